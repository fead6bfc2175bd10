package contract

import (
	"strconv"
	"strings"
	"time"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// accounts calls the operations of accounts, users, keys and money.
func (v *contractClient) accounts(account string) {
	const newAccount = `{"name":"n","email":"n@example.com","password":"long enough password","overdraft_floor_usd":"-1"}`
	created := v.ask(200, "POST", "/admin/v1/accounts", newAccount, "Idempotency-Key", "account")
	v.ask(200, "POST", "/admin/v1/accounts", newAccount, "Idempotency-Key", "account")
	base := "/admin/v1/accounts/" + text(created, "id")
	v.ask(200, "GET", "/admin/v1/accounts?q=n", "")
	v.ask(200, "GET", base, "")
	v.ask(200, "PATCH", base, `{"name":"m","disabled":true}`)
	v.ask(200, "POST", base+"/credits", `{"usd":"2.5","note":"n"}`)
	v.ask(400, "POST", base+"/credits", `{"usd":"much"}`)
	entry := first(v.ask(200, "GET", base+"/entries", ""))
	v.ask(200, "PATCH", "/admin/v1/entries/"+text(entry, "id"), `{"paid":true}`)
	v.ask(400, "PATCH", "/admin/v1/entries/"+text(entry, "id"), `{}`)
	v.ask(404, "PATCH", "/admin/v1/entries/ent_none", `{"paid":true}`)
	month := "/admin/v1/statements/" + time.Now().UTC().Format("2006-01")
	v.ask(200, "GET", month, "")
	v.ask(200, "GET", month+"?format=csv", "")
	v.ask(200, "GET", month+"/pdf", "")
	v.ask(404, "GET", "/admin/v1/statements/2999-01", "")
	v.ask(200, "GET", "/admin/v1/accounts/"+account+"/entries", "")
	user := v.ask(200, "POST", base+"/users", `{"email":"m@example.com","password":"long enough password","operator":true}`)
	v.ask(400, "DELETE", "/admin/v1/users/"+text(user, "id"), "") // the last owner
	v.ask(200, "POST", base+"/users", `{"email":"boss@example.com","password":"long enough password","role":"owner"}`)
	v.ask(200, "GET", base+"/users", "")
	v.ask(200, "GET", "/admin/v1/users/"+text(user, "id"), "")
	v.ask(200, "PATCH", "/admin/v1/users/"+text(user, "id"), `{"disabled":true}`)
	v.ask(400, "POST", "/admin/v1/users/"+text(user, "id")+"/link", "")
	v.ask(200, "PATCH", "/admin/v1/users/"+text(user, "id"), `{"disabled":false,"second_factor":false}`)
	v.ask(400, "POST", base+"/users", `{"email":"invited@example.com"}`)
	v.ask(200, "PATCH", base, `{"disabled":false,"test":true,"price_factor":"0.9","prices":{"sandbox-chat":1.25}}`)
	v.ask(200, "POST", base+"/users", `{"email":"invited@example.com"}`)
	v.ask(200, "POST", "/admin/v1/users/"+text(user, "id")+"/link", "")
	v.ask(200, "DELETE", "/admin/v1/users/"+text(user, "id"), "")
	v.announcements()
	const limits = `{"name":"k","rpm":5,"daily_budget_usd":1,"allowed_models":["sandbox-chat"],"allowed_ips":["10.0.0.0/8"]}`
	key := v.ask(200, "POST", base+"/keys", limits, "Idempotency-Key", "key")
	v.ask(200, "POST", base+"/keys", limits, "Idempotency-Key", "key")
	v.ask(200, "GET", base+"/keys", "")
	v.ask(200, "GET", "/admin/v1/keys?hint="+text(key, "hint"), "")
	v.ask(200, "GET", "/admin/v1/keys/"+text(key, "id"), "")
	v.ask(200, "PATCH", "/admin/v1/keys/"+text(key, "id"), `{"rpm":null,"disabled":true,"allowed_ips":null}`)
	v.ask(200, "PATCH", "/admin/v1/keys/"+text(key, "id"), `{"allowed_models":["sandbox-chat","later"]}`)
	v.ask(200, "POST", base+"/keys", `{"allowed_models":["later"]}`)
	v.ask(200, "DELETE", "/admin/v1/keys/"+text(key, "id"), "")
}

// announcements calls the operations of announcements.
func (v *contractClient) announcements() {
	const path, news = "/admin/v1/announcements", `{"title":"News","text":"a\nb","from":1700000000}`
	v.ask(200, "POST", path, news, "Idempotency-Key", "announcement")
	created := v.ask(200, "POST", path, news, "Idempotency-Key", "announcement")
	v.ask(400, "POST", path, `{"title":"News","level":"loud"}`)
	v.ask(200, "GET", path, "")
	v.ask(200, "PATCH", path+"/"+text(created, "id"), `{"level":"warning","until":1700003600}`)
	v.ask(200, "PATCH", path+"/"+text(created, "id"), `{"until":null}`)
	v.ask(400, "PATCH", path+"/"+text(created, "id"), `{"until":1}`)
	v.ask(404, "PATCH", path+"/ann_none", `{}`)
	v.ask(200, "DELETE", path+"/"+text(created, "id"), "")
	v.ask(404, "DELETE", path+"/"+text(created, "id"), "")
}

// webhooks calls the operations of an account's webhook and its deliveries. No server listens at the
// webhook's address.
func (v *contractClient) webhooks(account string) {
	base := "/admin/v1/accounts/" + account
	v.ask(200, "GET", base+"/webhook", "")
	v.ask(400, "PUT", base+"/webhook", `{"url":"http://10.0.0.1/","events":["image.completed"]}`)
	v.ask(200, "PUT", base+"/webhook",
		`{"url":"http://127.0.0.1:9/callback","events":["image.completed","balance.low"],"balance_low_credits":10}`)
	v.ask(200, "POST", base+"/webhook/roll", "")
	v.ask(200, "POST", base+"/webhook/test", "{}")
	delivery := first(v.ask(200, "GET", base+"/deliveries", ""))
	v.ask(200, "POST", "/admin/v1/deliveries/"+text(delivery, "id")+"/resend", "")
}

// mails calls the operations of the outbox, at a gateway of its own that sends mails.
func (v *contractClient) mails(binary string) {
	v.ask(400, "POST", "/admin/v1/mails/test", `{"to":"ann@example.com"}`)
	main := v.process
	defer func() { v.process = main }()
	v.process = scene.Start(v.t, binary, map[string]string{"database": storetest.SQLite(v.t), "smtp_security": "none",
		"smtp_server": fakemail.Start(v.t, fakemail.Options{}).Address, "mail_from": "shop@example.com", "public_url": "https://api.example.com"})
	m := v.ask(200, "POST", "/admin/v1/mails/test", `{"to":"ann@example.com"}`)
	v.ask(400, "POST", "/admin/v1/mails/test", `{"to":"ann"}`)
	v.ask(200, "GET", "/admin/v1/mails?state=sent", "")
	v.ask(400, "GET", "/admin/v1/mails?state=lost", "")
	v.ask(200, "POST", "/admin/v1/mails/"+text(m, "id")+"/resend", "")
}

// codes calls the operations of redeem codes.
func (v *contractClient) codes() {
	created := v.ask(200, "POST", "/admin/v1/codes", `{"usd":1,"count":2,"expires":4102444800}`)
	v.ask(200, "GET", "/admin/v1/codes", "")
	v.ask(200, "DELETE", "/admin/v1/codes/"+text(first(created), "id"), "")
}

// change schedules a catalog and cancels the change.
func (v *contractClient) change(catalog string) {
	at := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	id := text(v.ask(200, "PUT", "/admin/v1/catalog?note=new&tell_customers=true&at="+at, catalog), "id")
	v.ask(400, "PUT", "/admin/v1/catalog?at=1", catalog)
	v.ask(200, "GET", "/admin/v1/catalog/changes", "")
	v.ask(200, "GET", "/admin/v1/catalog/changes/"+id, "")
	v.ask(200, "POST", "/admin/v1/catalog/changes/"+id+"/cancel", "")
	v.ask(400, "POST", "/admin/v1/catalog/changes/"+id+"/cancel", "")
	v.ask(404, "GET", "/admin/v1/catalog/changes/chg_none", "")
}

// gateway calls the operations of the catalog, the lines and the books.
func (v *contractClient) gateway() {
	const catalog = `{"models":[{"id":"x","kind":"chat","forms":["chat"],"context_window":1000,"max_output_tokens":100,` +
		`"price":{"input":1,"output":"2"}}],"lines":[{"id":"l","provider":"sandbox","models":{"x":"y"}}]}`
	v.ask(200, "GET", "/admin/v1/lines", "")
	v.ask(200, "GET", "/admin/v1/lines?node=all", "")
	v.ask(200, "GET", "/admin/v1/catalog", "")
	v.ask(200, "GET", "/admin/v1/catalog", "", "Accept", "application/yaml")
	v.ask(200, "PUT", "/admin/v1/catalog?dry_run=true", catalog)
	v.ask(200, "PUT", "/admin/v1/catalog", catalog)
	v.ask(400, "PUT", "/admin/v1/catalog", `{"models":[{"id":"x"}]}`)
	v.ask(400, "PUT", "/admin/v1/catalog", catalog, "Content-Encoding", "gzip")
	v.ask(200, "GET", "/admin/v1/catalog/revisions", "")
	v.ask(200, "GET", "/admin/v1/catalog/revisions/1", "")
	v.change(strings.Replace(catalog, `"input":1`, `"input":3`, 1))
	v.ask(404, "GET", "/admin/v1/catalog/revisions/99", "")
	v.ask(200, "GET", "/admin/v1/log", "")
	v.ask(200, "GET", "/admin/v1/audit", "")
}
