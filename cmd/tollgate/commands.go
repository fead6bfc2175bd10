package main

// commandLine is the grammar of the command line; the settings' flags join it.
type commandLine struct {
	Config string `help:"Settings file (YAML); also TOLLGATE_CONFIG." placeholder:"FILE"`

	Serve   serveCommand   `cmd:"" help:"Run the service; on an empty database it sets itself up."`
	Apply   applyCommand   `cmd:"" help:"Check a catalog file, show what it changes and make it current."`
	Catalog catalogCommand `cmd:"" help:"Print the current catalog."`
	Account accountCommand `cmd:"" help:"Open accounts, credit them, change them."`
	Key     keyCommand     `cmd:"" help:"Make API keys, change them, delete them."`
	Audit   auditCommand   `cmd:"" help:"Prove the books: exit 1 if anything differs."`
	Version versionCommand `cmd:"" help:"Print version, commit and Go version."`
}

// accountCommand are the commands about accounts.
type accountCommand struct {
	Create  accountCreate  `cmd:"" help:"Open an account."`
	List    accountList    `cmd:"" help:"List accounts."`
	Get     accountGet     `cmd:"" help:"Show an account."`
	Change  accountChange  `cmd:"" help:"Change an account."`
	Credit  accountCredit  `cmd:"" help:"Add to the balance; a negative amount takes back."`
	Entries accountEntries `cmd:"" help:"List the money movements of an account, newest first."`
	Disable accountDisable `cmd:"" help:"Stop all keys of an account."`
	Enable  accountEnable  `cmd:"" help:"Let an account's keys work again."`
}

// keyCommand are the commands about API keys.
type keyCommand struct {
	Create  keyCreate  `cmd:"" help:"Make a key; its value is shown this once."`
	List    keyList    `cmd:"" help:"List the keys of an account."`
	Change  keyChange  `cmd:"" help:"Change a key's name, limits and lists."`
	Disable keyDisable `cmd:"" help:"Stop a key."`
	Enable  keyEnable  `cmd:"" help:"Let a key work again."`
	Delete  keyDelete  `cmd:"" help:"Delete a key for ever."`
}
