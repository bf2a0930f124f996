package admin

import (
	"net/http"

	"acuse/access"
)

// pageRoutes lists the pages. Every form stands at the path that it posts to.
func (a *Admin) pageRoutes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{get, "/setup", "", a.setup},
		{post, "/setup", "", a.setupSave},
		{get, "/login", "", a.loginForm},
		{post, "/login", "", a.login},
		{get, "/login/done", "", a.loginDone},
		{get, "/logout", "", a.logoutForm},
		{post, "/logout", "", a.logout},
		{post, "/preferences", "", a.preferences},
		{get, "/keyboard", "", a.keyboard},

		{get, "/{$}", access.Read, a.overview},
		{get, "/deliveries", access.Read, a.deliveries},
		{get, "/deliveries/{id}", access.Read, a.delivery},
		{get, "/deliveries/{id}/body", access.Body, a.downloadBody},
		{get, "/deliveries/{id}/resend", access.Resend, a.resendForm},
		{post, "/deliveries/{id}/resend", access.Resend, a.resend},
		{get, "/deliveries/{id}/cancel", access.Resend, a.cancelForm},
		{post, "/deliveries/{id}/cancel", access.Resend, a.cancel},
		{get, "/deliveries/{id}/release", access.Resend, a.releaseForm},
		{post, "/deliveries/{id}/release", access.Resend, a.release},
		{get, "/resend", access.Resend, a.resendManyForm},
		{post, "/resend", access.Resend, a.resendMany},
		{get, "/dead", access.Read, a.dead},
		{get, "/dead/{group}/resend", access.Resend, a.deadForm(actResend)},
		{post, "/dead/{group}/resend", access.Resend, a.deadAct(actResend)},
		{get, "/dead/{group}/cancel", access.Resend, a.deadForm(actCancel)},
		{post, "/dead/{group}/cancel", access.Resend, a.deadAct(actCancel)},
		{get, "/rejections", access.Read, a.rejections},
		{get, "/rejections/recheck", access.Resend, a.recheckForm},
		{post, "/rejections/recheck", access.Resend, a.recheck},
		{get, "/rejections/{id}", access.Read, a.rejection},
		{get, "/sources", access.Read, a.sources},
		{get, "/sources/{name}", access.Read, a.source},
		{post, "/sources/{name}", access.Admin, a.sourceTest},
		{get, "/sources/{name}/capture", access.Admin, a.source},
		{post, "/sources/{name}/capture", access.Admin, a.captureAct},
		{get, "/destinations", access.Read, a.destinations},
		{get, "/destinations/{name}", access.Read, a.destination},
		{post, "/destinations/{name}", access.Resend, a.destinationAct},
		{get, "/settings", access.Read, a.settings},
		{get, "/settings/account", access.Read, a.account},
		{post, "/settings/account", access.Read, a.accountSave},
		{get, "/settings/tokens", access.Admin, a.tokens},
		{post, "/settings/tokens", access.Admin, a.tokenCreate},
		{get, "/settings/tokens/{id}/revoke", access.Admin, a.tokenRevokeForm},
		{post, "/settings/tokens/{id}/revoke", access.Admin, a.tokenRevoke},
		{get, "/settings/storage", access.Read, a.storage},
		{get, "/settings/storage/backup", access.Admin, a.backupForm},
		{post, "/settings/storage/backup", access.Admin, a.backupNow},
		{get, "/settings/storage/verify", access.Admin, a.verifyForm},
		{post, "/settings/storage/verify", access.Admin, a.verifyNow},
		{get, "/settings/about", access.Read, a.about},
	}
}
