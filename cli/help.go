package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpTemplate shows the examples first: they answer most questions.
const helpTemplate = `{{if .Example}}{{.Example}}

{{end}}{{.Short}}

{{.UsageString}}`

// localize makes the help of all commands speak the reader's language: cobra's own words are
// English.
func (a *app) localize(root *cobra.Command) {
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageFunc(a.usage)
	root.PersistentFlags().BoolP("help", "h", false, a.w("flag.help"))
	root.Flags().BoolP("version", "v", false, a.w("flag.version"))
	help := a.command("help [COMMAND]", "help", cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		c, rest, err := cmd.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return a.misuse(cmd, a.f("unknown.command", clean(strings.Join(args, " ")))+a.meant(cmd.Root(), args[0]))
		}
		return c.Help()
	})
	root.SetHelpCommand(help)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = a.w("cmd.completion")
		}
	}
}

// usage prints how a command is called, what is below it, and its flags.
func (a *app) usage(c *cobra.Command) error {
	var b strings.Builder
	b.WriteString(a.w("usage.title"))
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " " + a.w("usage.command") + "\n\n" + a.w("usage.commands"))
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
	}
	for _, part := range [][2]string{{"usage.flags", c.LocalFlags().FlagUsages()}, {"usage.global", c.InheritedFlags().FlagUsages()}} {
		if flags := strings.TrimRight(part[1], " \n"); flags != "" {
			b.WriteString("\n\n" + a.w(part[0]) + "\n" + strings.ReplaceAll(flags, "(default ", "("+a.w("usage.default")+" "))
		}
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n\n" + a.f("usage.more", c.CommandPath()))
	}
	_, err := fmt.Fprintln(c.OutOrStderr(), b.String())
	return err
}
