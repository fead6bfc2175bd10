package importer

import (
	"reflect"
	"strings"
	"testing"
)

// readAll reads the tables users and options of a dump.
func readAll(text string) (tables, error) {
	found := tables{}
	err := readDump(strings.NewReader(text), found, []string{"users", "options"})
	return found, err
}

func TestDumps(t *testing.T) {
	t.Parallel()
	const users = "CREATE TABLE `users` (`id` int(11) NOT NULL, `name` varchar(9) DEFAULT 'a,)(', PRIMARY KEY (`id`), KEY `k` (`name`(3)));\n"
	const into = "INSERT INTO users VALUES "
	row := func(id, name string) record { return record{"id": id, "name": name} }
	for name, test := range map[string]struct {
		text string
		want []record
	}{
		"several rows":       {users + into + "(1,'a'),(2,'b');", []record{row("1", "a"), row("2", "b")}},
		"several statements": {users + into + "(1,'a');\n" + into + "(2,'b');", []record{row("1", "a"), row("2", "b")}},
		"escapes":            {users + into + `(1,'it''s \'so\' \\ \n\0\Z\%');`, []record{row("1", "it's 'so' \\ \n\x00\x1a%")}},
		"double quotes":      {users + into + `(1,"a ""b"" 'c'");`, []record{row("1", `a "b" 'c'`)}},
		"marks in a text":    {users + into + "(1,'),(;-- /*');", []record{row("1", "),(;-- /*")}},
		"null":               {users + into + "(1,NULL),(2,null);", []record{{"id": "1"}, {"id": "2"}}},
		"the word null":      {users + into + "(1,'NULL');", []record{row("1", "NULL")}},
		"bytes": {users + into + "(0x31,0x6162),(2,X'6364'),(3,_binary 'e');",
			[]record{row("1", "ab"), row("2", "cd"), row("3", "e")}},
		"numbers":             {users + into + "(-1,1.5e-3),(+2,1E+9);", []record{row("-1", "1.5e-3"), row("+2", "1E+9")}},
		"whole inserts":       {"INSERT INTO `db`.`users` (`name`,`id`) VALUES ('a',1);", []record{row("1", "a")}},
		"extra words":         {users + "INSERT IGNORE INTO users VALUES (1,'a') ON DUPLICATE KEY UPDATE id=1;", []record{row("1", "a")}},
		"replace":             {users + "REPLACE INTO users VALUES (1,'a');", []record{row("1", "a")}},
		"comments":            {"# one\n-- two\n/* three ; */ /*!40101 SET x=1 */;" + users + into + "/* ; */ (1,'a');", []record{row("1", "a")}},
		"other tables":        {users + "INSERT INTO logs VALUES (1,'" + into + "(9,''x'')');" + into + "(1,'a');", []record{row("1", "a")}},
		"other statements":    {"LOCK TABLES `users` WRITE;UNLOCK TABLES;CREATE INDEX i ON users (id);" + users, []record{}},
		"if not exists":       {"CREATE TABLE IF NOT EXISTS users (id int, name text);" + into + "(1,'a');", []record{row("1", "a")}},
		"no end of statement": {users + into + "(1,'a');\nSET x = 1", []record{row("1", "a")}},
		"letters of anywhere": {users + into + "(1,'深度 é');", []record{row("1", "深度 é")}},
	} {
		got, err := readAll(test.text)
		if err != nil || !reflect.DeepEqual(got["users"], test.want) {
			t.Errorf("%s: %q, %v", name, got["users"], err)
		}
	}
}

func TestDumpsThatAreNone(t *testing.T) {
	t.Parallel()
	const users = "CREATE TABLE users (id int, name text);"
	for name, test := range map[string]struct{ text, want string }{
		"cut in a text":      {users + "INSERT INTO users VALUES (1,'a", "not whole"},
		"cut in a row":       {users + "INSERT INTO users VALUES (1,", "not whole"},
		"cut behind a row":   {users + "INSERT INTO users VALUES (1,'a')", "not whole"},
		"cut in a table":     {"CREATE TABLE users (id int, ", "not whole"},
		"cut in a comment":   {"/* a", "not whole"},
		"too few values":     {users + "INSERT INTO users VALUES (1);", "1 values, its table 2 columns"},
		"too many values":    {users + "INSERT INTO users VALUES (1,2,3);", "stands where a value should"},
		"no columns":         {"INSERT INTO users VALUES (1,'a');", "which columns users has"},
		"a select":           {users + "INSERT INTO users SELECT 1;", "where VALUES should"},
		"an expression":      {users + "INSERT INTO users VALUES (now(),1);", "between values"},
		"a dump of SQLite":   {"PRAGMA foreign_keys=OFF;", "name the database file"},
		"a dump of Postgres": {"COPY public.users (id) FROM stdin;", "postgres:// URL"},
		"half a byte":        {users + "INSERT INTO users VALUES (1,0x123);", "hexadecimal"},
		"a place":            {"\n\n" + users + "\nINSERT INTO users VALUES (1);", "line 4: "},
		"a secret":           {users + "INSERT INTO users VALUES (1,'a' 'sk-secret');", "a value"},
	} {
		_, err := readAll(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDump: whatever a file holds, it is read or refused, and no row has a column that
// its table has not.
func FuzzDump(f *testing.F) {
	for _, seed := range []string{
		"CREATE TABLE `users` (`id` int, `name` text);INSERT INTO `users` VALUES (1,'a''\\n'),(0x41,NULL);",
		"INSERT INTO users (id) VALUES (-1.5e3) ON DUPLICATE KEY UPDATE id=1;", "/*!1 a */ -- b\n# c\n`x", "PRAGMA", "X'41'", "0xzz", "'\\",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := readAll(text)
		if err != nil {
			return
		}
		for table, rows := range found {
			if table != "users" && table != "options" {
				t.Errorf("read the table %q", table)
			}
			for _, row := range rows {
				for column, value := range row {
					if len(column) > len(text) || len(value) > len(text) {
						t.Errorf("%q: %q", column, value)
					}
				}
			}
		}
	})
}
