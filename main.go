// Command acuse receives webhooks, keeps them, and hands them over until they are
// done.
package main

func main() {}
