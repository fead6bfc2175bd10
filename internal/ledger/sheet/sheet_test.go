package sheet

import "testing"

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Acme": "Acme", "-2.5": "-2.5", "+1": "+1", "=1+1": "'=1+1", "+1+1": "'+1+1", "-cmd": "'-cmd", "@sum": "'@sum", "\tx": "'\tx",
		"a=b": "a=b", "x;=1+1": "x;'=1+1", "x;-2": "x;'-2", "x\n=1+1": "x\n'=1+1", "x\t@sum": "x\t'@sum", ";;=1": ";;'=1", "a; b": "a; b",
		"\r=x": "'\r'=x", "x\r\n=1": "x\r\n'=1", "x;\t@y": "x;'\t'@y", "'=1": "'=1", ";": ";",
		"＝1+1": "'＝1+1", "＋1": "'＋1", "－2": "'－2", "＠sum": "'＠sum", "a＝b": "a＝b", "x;＝1": "x;'＝1", "x\n＠sum": "x\n'＠sum",
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
