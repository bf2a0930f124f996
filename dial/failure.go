package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// ErrTimeout is the cause of a context that bounds a whole request.
var ErrTimeout = errors.New("timeout")

// Failure gives the class and the text of a transport error: why no whole answer came. The
// text is made here and not taken from the error, which may quote URL and answer.
func Failure(ctx context.Context, err error, p Phase) (class, text string) {
	var dns *net.DNSError
	var netErr net.Error
	timeout := errors.Is(context.Cause(ctx), ErrTimeout) || errors.As(err, &netErr) && netErr.Timeout()
	switch {
	case errors.Is(err, ErrForbidden):
		return "forbidden_address", "the address is not one that acuse connects to"
	case errors.As(err, &dns):
		return dnsName(dns)
	case timeout && p.Resolving:
		return "dns_timeout", "DNS: no answer in time"
	case timeout && !p.Connected:
		return "timeout", "timeout while connecting"
	case timeout:
		return "timeout", "timeout"
	case ctx.Err() != nil:
		return "cancelled", "stopped by acuse"
	case p.TLSFailed || isTLS(err):
		return "tls", "TLS: " + tlsText(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused", "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return "reset", "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable", "no route to the host"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), says(err, "unexpected EOF"), says(err, "server closed idle connection"):
		return "empty_reply", "connection closed without a whole answer"
	case says(err, "malformed "):
		return "not_http", "the answer is not HTTP"
	}
	return "connection", "connection failed"
}

// says looks into an error that net/http neither exports nor wraps.
func says(err error, words string) bool { return strings.Contains(err.Error(), words) }

func dnsName(e *net.DNSError) (class, text string) {
	switch {
	case e.IsNotFound:
		return "dns_not_found", "DNS: no such host"
	case e.IsTimeout:
		return "dns_timeout", "DNS: no answer in time"
	}
	return "dns_failed", "DNS: the server failed"
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var verify *tls.CertificateVerificationError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify)
}

// tlsText tells what a person can mend; certificates are no secret.
func tlsText(err error) string {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &host):
		return "the certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	case errors.As(err, &invalid):
		return "the certificate is not valid"
	case errors.As(err, &unknown):
		return "the certificate's authority is not known"
	case errors.As(err, &record):
		return "the other side does not speak TLS"
	case errors.As(err, &alert):
		return alert.Error()
	}
	return "the handshake failed"
}
