package account

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestParseAllowedIPs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   []string
		want []string
	}{
		{nil, nil},
		{[]string{"192.0.2.7"}, []string{"192.0.2.7"}},
		{[]string{"192.0.2.7/32", "192.0.2.7"}, []string{"192.0.2.7"}},
		{[]string{"192.0.2.99/24"}, []string{"192.0.2.0/24"}},
		{[]string{"::ffff:192.0.2.7"}, []string{"192.0.2.7"}},
		{[]string{"::ffff:10.1.2.3/104"}, []string{"10.0.0.0/8"}},
		{[]string{"2001:DB8:0:0::7", "2001:db8::1/32"}, []string{"2001:db8::7", "2001:db8::/32"}},
		{[]string{"0.0.0.0/0", "::/0"}, []string{"0.0.0.0/0", "::/0"}},
	}
	for _, test := range tests {
		got, err := ParseAllowedIPs(test.in)
		if err != nil || !slices.Equal(ShowIPs(got), test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("ParseAllowedIPs(%q) = %q, %v, want %q", test.in, ShowIPs(got), err, test.want)
		}
	}
}

func TestParseAllowedIPsFaults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "192.0.2", "192.0.2.7/33", "192.0.2.7/-1", "192.0.2.7/024", "010.0.0.1",
		"example.com", "fe80::1%eth0", "fe80::%eth0/64", "::ffff:192.0.2.7/90", "192.0.2.7:80", strings.Repeat("1", 100)} {
		_, err := ParseAllowedIPs([]string{"192.0.2.1", text})
		wantFault(t, err, fault.InvalidRequest, "allowed_ips[1]")
	}
	_, err := ParseAllowedIPs([]string{})
	wantFault(t, err, fault.InvalidRequest, "allowed_ips")
	_, err = ParseAllowedIPs(slices.Repeat([]string{"192.0.2.1"}, 501))
	wantFault(t, err, fault.InvalidRequest, "allowed_ips")
}

func TestAllowsAddress(t *testing.T) {
	t.Parallel()
	list, err := ParseAllowedIPs([]string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.4"})
	if err != nil {
		t.Fatal(err)
	}
	p := Principal{AllowedIPs: list}
	for text, want := range map[string]bool{
		"192.0.2.200": true, "::ffff:192.0.2.200": true, "2001:db8::1": true, "2001:db8::1%eth0": true, "198.51.100.4": true,
		"192.0.3.1": false, "198.51.100.5": false, "2001:db9::1": false, "::1": false,
	} {
		if got := p.AllowsAddress(netip.MustParseAddr(text)); got != want {
			t.Errorf("AllowsAddress(%s) = %v, want %v", text, got, want)
		}
	}
	if p.AllowsAddress(netip.Addr{}) {
		t.Error("a list allows the zero Addr")
	}
	if !(Principal{}).AllowsAddress(netip.Addr{}) {
		t.Error("a nil list does not allow the zero Addr")
	}
}

func TestParseAllowedModels(t *testing.T) {
	t.Parallel()
	got, err := ParseAllowedModels([]string{"b", "a", "b"})
	if err != nil || !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf(`ParseAllowedModels("b", "a", "b") = %q, %v, want "b", "a"`, got, err)
	}
	if got, err := ParseAllowedModels(nil); got != nil || err != nil {
		t.Errorf("ParseAllowedModels(nil) = %q, %v, want nil", got, err)
	}
	for _, text := range []string{"", " ", "a b", "a\x00", "\xff", strings.Repeat("a", 201)} {
		_, err := ParseAllowedModels([]string{text})
		wantFault(t, err, fault.InvalidRequest, "allowed_models[0]")
	}
	_, err = ParseAllowedModels([]string{})
	wantFault(t, err, fault.InvalidRequest, "allowed_models")
	p := Principal{AllowedModels: []string{"a"}}
	if !p.AllowsModel("a") || p.AllowsModel("A") || !(Principal{}).AllowsModel("x") {
		t.Error("AllowsModel does not follow the list")
	}
}

func TestDamagedListAllowsNothing(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"null", "[]", "{", "[1]", `"a"`} {
		if list, err := loadList(column); err == nil {
			t.Errorf("loadList(%q) = %q, want an error", column, list)
		}
	}
	if _, _, err := loadAllowlists("", `["nonsense"]`); err == nil {
		t.Error("a damaged address list was loaded")
	}
}

func FuzzParseAllowedIPs(f *testing.F) {
	for _, seed := range []string{"192.0.2.7", "10.0.0.0/8", "::ffff:10.0.0.0/104", "fe80::1%1", "::/0", "1.2.3.4/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseAllowedIPs([]string{text})
		if err != nil {
			return
		}
		formatted := ShowIPs(list)
		reparsed, err := ParseAllowedIPs(formatted)
		if err != nil || !slices.Equal(list, reparsed) {
			t.Fatalf("%q is formatted as %q, which parses as %v, %v", text, formatted, reparsed, err)
		}
		if addr := list[0].Addr(); addr.Is4In6() || addr.Zone() != "" || !allowsAddress(list, addr) {
			t.Fatalf("ParseAllowedIPs(%q) = %v, want a list that allows its own address", text, list)
		}
	})
}
