package main

// commandLine is the grammar of the command line, without the flags of settings.
type commandLine struct {
	Config      string      `help:"Settings file (YAML); also TOLLGATE_CONFIG." placeholder:"FILE"`
	VersionFlag versionFlag `name:"version" help:"Print version, commit and Go version."`

	Serve      serveCommand      `cmd:"" help:"Run the service. On an empty database it creates a demo account and catalog."`
	Migrate    migrateCommand    `cmd:"" help:"Migrate the database to this version; --dry-run only lists the migrations."`
	Apply      applyCommand      `cmd:"" help:"Check a catalog file, show its changes, and make it current."`
	Catalog    catalogCommand    `cmd:"" help:"Print the current catalog."`
	Import     importCommand     `cmd:"" help:"Import models, lines, accounts and keys from one-api, new-api or LiteLLM."`
	Account    accountCommand    `cmd:"" help:"Create, find, credit and change accounts."`
	User       userCommand       `cmd:"" help:"Create, change and delete the users of accounts."`
	Key        keyCommand        `cmd:"" help:"Create, find, change and delete API keys."`
	Codes      codesCommand      `cmd:"" help:"Create, list and void redeem codes."`
	Webhook    webhookCommand    `cmd:"" help:"Configure the webhook of an account; list and resend deliveries."`
	Mail       mailCommand       `cmd:"" help:"Test the settings of mail; list and resend mails."`
	Usage      usageCommand      `cmd:"" help:"Show usage and charges by day, account, key, model or line."`
	Request    requestCommand    `cmd:"" help:"List requests; show the cost and the attempts of one."`
	Job        jobCommand        `cmd:"" help:"List, show, cancel and repeat jobs."`
	Line       lineCommand       `cmd:"" help:"List lines; take them out of service and back."`
	Secret     secretCommand     `cmd:"" help:"Store the keys of providers in the database; encrypt them again with a new key."`
	Audit      auditCommand      `cmd:"" help:"Recompute the books: exit 1 if anything differs."`
	Health     healthCommand     `cmd:"" help:"Check that the service on this machine is ready: exit 1 if not."`
	Completion completionCommand `cmd:"" help:"Print the completion script for bash, zsh or fish."`
	Version    versionCommand    `cmd:"" help:"Print version, commit and Go version."`
	Help       helpCommand       `cmd:"" help:"Show the arguments of a command, or all settings."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print the completions of the last word."`
}

type accountCommand struct {
	format

	Create  accountCreate  `cmd:"" help:"Create an account."`
	List    accountList    `cmd:"" help:"List accounts, or search for them."`
	Get     accountGet     `cmd:"" aliases:"show" help:"Show an account."`
	Change  accountChange  `cmd:"" help:"Change an account."`
	Credit  accountCredit  `cmd:"" help:"Add to the balance; a negative amount is subtracted."`
	Entries accountEntries `cmd:"" help:"List the credits and charges of an account, newest first."`
	Disable accountSwitch  `cmd:"" help:"Disable an account and all its keys."`
	Enable  accountSwitch  `cmd:"" help:"Enable an account again."`
}

type keyCommand struct {
	format

	Create  keyCreate `cmd:"" help:"Create a key. Its value is shown only once."`
	List    keyList   `cmd:"" help:"List the keys of an account, or find keys by their hint."`
	Change  keyChange `cmd:"" help:"Change the name, the limits and the allowed models and addresses of a key."`
	Disable keySwitch `cmd:"" help:"Disable a key."`
	Enable  keySwitch `cmd:"" help:"Enable a key again."`
	Delete  keyDelete `cmd:"" help:"Delete a key."`
}

type webhookCommand struct {
	format

	Get        webhookGet        `cmd:"" aliases:"show" help:"Show the address, event types and signing secret of an account's webhook."`
	Set        webhookSet        `cmd:"" help:"Set address, event types and the threshold of balance.low. A missing flag clears its value."`
	Roll       webhookRoll       `cmd:"" help:"Create a new signing secret. The old one stops working at once."`
	Test       webhookTest       `cmd:"" help:"Send a test event now and show the response."`
	Deliveries webhookDeliveries `cmd:"" help:"List the deliveries of an account, newest first."`
	Resend     webhookResend     `cmd:"" help:"Send a delivery again now."`
}

type mailCommand struct {
	format

	Test   mailTest   `cmd:"" help:"Send a test mail now and show the result."`
	List   mailList   `cmd:"" help:"List the mails of the last 30 days, newest first."`
	Resend mailResend `cmd:"" help:"Send a mail again now."`
}

// userCommand has the commands for the users of the console.
type userCommand struct {
	format

	Create  userCreate `cmd:"" help:"Add a user to an account. Without a password, it prints a link for setting one."`
	List    userList   `cmd:"" help:"List the users of an account."`
	Get     userGet    `cmd:"" aliases:"show" help:"Show a user."`
	Change  userChange `cmd:"" help:"Change a user's email, password or rights. A new password ends the user's sessions."`
	Link    userLink   `cmd:"" help:"Print a link with which a user sets a password. Earlier links stop working."`
	Disable userSwitch `cmd:"" help:"Disable a user and end the user's sessions."`
	Enable  userSwitch `cmd:"" help:"Enable a user again."`
	Delete  userDelete `cmd:"" help:"Delete a user."`
}

type codesCommand struct {
	format

	Create codesCreate `cmd:"" help:"Create codes. They are shown only once."`
	List   codesList   `cmd:"" help:"List codes, newest first, by ID and hint."`
	Void   codesVoid   `cmd:"" help:"Void a code that was not redeemed."`
}

type requestCommand struct {
	format

	List requestList `cmd:"" help:"List requests, newest first."`
	Show requestShow `cmd:"" aliases:"get" help:"Show a request: hold, price, charge, and each attempt with its error."`
}

type jobCommand struct {
	format

	List    jobList    `cmd:"" help:"List jobs, newest first."`
	Show    jobShow    `cmd:"" aliases:"get" help:"Show a job: its steps, and each attempt with its error."`
	Cancel  jobCancel  `cmd:"" help:"Cancel and refund a job that has not ended. Needs the running service."`
	Requeue jobRequeue `cmd:"" help:"Start a job again. Needs the running service."`
}

// secretCommand has the commands for the secrets of lines.
type secretCommand struct {
	format

	List   secretList   `cmd:"" help:"List the secrets, without their values."`
	Set    secretSet    `cmd:"" help:"Store or replace a secret, read from standard input."`
	Delete secretDelete `cmd:"" help:"Delete a secret that no line uses."`
	Rotate secretRotate `cmd:"" help:"Encrypt all secrets again, with the first key in secret_key."`
}

type lineCommand struct {
	format

	List   lineList   `cmd:"" help:"List lines with their state on all nodes."`
	Drain  lineSwitch `cmd:"" help:"Take a line out of service on all nodes until it is resumed."`
	Resume lineSwitch `cmd:"" help:"Return a line to service and clear its failures."`
}
