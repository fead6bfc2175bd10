package main

// commandLine is the grammar of the command line; the settings' flags join it.
type commandLine struct {
	Config      string      `help:"Settings file (YAML); also TOLLGATE_CONFIG." placeholder:"FILE"`
	VersionFlag versionFlag `name:"version" help:"Print version, commit and Go version."`

	Serve      serveCommand      `cmd:"" help:"Run the service; on an empty database it sets itself up."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the tables of a database to this version; --dry-run only lists."`
	Apply      applyCommand      `cmd:"" help:"Check a catalog file, show its changes, make it current."`
	Catalog    catalogCommand    `cmd:"" help:"Print the current catalog."`
	Import     importCommand     `cmd:"" help:"Carry over what one-api, new-api or LiteLLM has: models, lines, accounts, keys."`
	Account    accountCommand    `cmd:"" help:"Open accounts, find them, credit them, change them."`
	User       userCommand       `cmd:"" help:"Add, change and delete the sign-ins of accounts."`
	Key        keyCommand        `cmd:"" help:"Make API keys, find them, change them, delete them."`
	Codes      codesCommand      `cmd:"" help:"Make redeem codes, list them, make them void."`
	Webhook    webhookCommand    `cmd:"" help:"Set where an account gets its events; look at deliveries."`
	Usage      usageCommand      `cmd:"" help:"Show what requests came to, by day, account, model, line."`
	Request    requestCommand    `cmd:"" help:"Look at requests: what they cost, and what happened to them."`
	Job        jobCommand        `cmd:"" help:"Look at jobs, end them, let them be done anew."`
	Line       lineCommand       `cmd:"" help:"Look at lines, take them out of use, bring them back."`
	Audit      auditCommand      `cmd:"" help:"Prove the books: exit 1 if anything differs."`
	Health     healthCommand     `cmd:"" help:"Ask the service on this machine whether it can serve: exit 1 if not."`
	Completion completionCommand `cmd:"" help:"Print what makes bash, zsh or fish complete commands."`
	Version    versionCommand    `cmd:"" help:"Print version, commit and Go version."`
	Help       helpCommand       `cmd:"" help:"Show what a command takes, or all settings."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what may stand in place of the last word."`
}

// accountCommand are the commands about accounts.
type accountCommand struct {
	format

	Create  accountCreate  `cmd:"" help:"Open an account."`
	List    accountList    `cmd:"" help:"List accounts, or those that hold a text."`
	Get     accountGet     `cmd:"" aliases:"show" help:"Show an account."`
	Change  accountChange  `cmd:"" help:"Change an account."`
	Credit  accountCredit  `cmd:"" help:"Add to the balance; a negative amount takes back."`
	Entries accountEntries `cmd:"" help:"List the money movements of an account, newest first."`
	Disable accountDisable `cmd:"" help:"Stop all keys of an account."`
	Enable  accountEnable  `cmd:"" help:"Let an account's keys work again."`
}

// keyCommand are the commands about API keys.
type keyCommand struct {
	format

	Create  keyCreate  `cmd:"" help:"Make a key; its value is shown this once."`
	List    keyList    `cmd:"" help:"List the keys of an account, or those that show a hint."`
	Change  keyChange  `cmd:"" help:"Change a key's name, limits and lists."`
	Disable keyDisable `cmd:"" help:"Stop a key."`
	Enable  keyEnable  `cmd:"" help:"Let a key work again."`
	Delete  keyDelete  `cmd:"" help:"Delete a key for ever."`
}

// webhookCommand are the commands about webhooks.
type webhookCommand struct {
	format

	Get        webhookGet        `cmd:"" aliases:"show" help:"Show an account's address, chosen types and signing secret."`
	Set        webhookSet        `cmd:"" help:"Set the address, the chosen types and the level of balance.low; what is left out is none."`
	Roll       webhookRoll       `cmd:"" help:"Make a new signing secret; the old one stops working at once."`
	Test       webhookTest       `cmd:"" help:"Send a test event now and show the answer."`
	Deliveries webhookDeliveries `cmd:"" help:"List the deliveries of an account, newest first."`
	Resend     webhookResend     `cmd:"" help:"Send a delivery again now."`
}

// userCommand are the commands about who signs in to the console.
type userCommand struct {
	format

	Create  userCreate  `cmd:"" help:"Add a user to an account; without a password, the link that sets one is shown this once."`
	List    userList    `cmd:"" help:"List the users of an account."`
	Get     userGet     `cmd:"" aliases:"show" help:"Show a user."`
	Change  userChange  `cmd:"" help:"Change a user's email, password or rights; a new password ends its sessions."`
	Link    userLink    `cmd:"" help:"Make a link, shown this once, with which a user sets a password; the one before is void."`
	Disable userDisable `cmd:"" help:"Keep a user out and end its sessions."`
	Enable  userEnable  `cmd:"" help:"Let a user sign in again."`
	Delete  userDelete  `cmd:"" help:"Delete a user for ever."`
}

// codesCommand are the commands about redeem codes.
type codesCommand struct {
	format

	Create codesCreate `cmd:"" help:"Make codes; their texts are shown this once."`
	List   codesList   `cmd:"" help:"List codes, newest first, without their texts."`
	Void   codesVoid   `cmd:"" help:"Make a code worth nothing that was not redeemed."`
}

// requestCommand are the commands about requests.
type requestCommand struct {
	format

	List requestList `cmd:"" help:"List requests, newest first."`
	Show requestShow `cmd:"" aliases:"get" help:"Show a request: hold, price, charge, and each attempt with its cause."`
}

// jobCommand are the commands about jobs.
type jobCommand struct {
	format

	List    jobList    `cmd:"" help:"List jobs, newest first."`
	Show    jobShow    `cmd:"" aliases:"get" help:"Show a job: its steps, and each attempt with its cause."`
	Cancel  jobCancel  `cmd:"" help:"End a job that has not ended; it is refunded. Asks the running service."`
	Requeue jobRequeue `cmd:"" help:"Let a job be done anew. Asks the running service."`
}

// lineCommand are the commands about lines.
type lineCommand struct {
	format

	List   lineList   `cmd:"" help:"List lines and how they do, over all nodes."`
	Drain  lineDrain  `cmd:"" help:"Take a line out of use on all nodes, until it is resumed."`
	Resume lineResume `cmd:"" help:"Bring a line back, and forget what was held against it."`
}
