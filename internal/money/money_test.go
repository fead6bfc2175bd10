package money

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestAmountsAreReadExactly(t *testing.T) {
	for text, want := range map[string]Amount{
		"0": 0, "12.5": 12_500_000_000, "0.1": 100_000_000, "-0.000000001": -1, "1e-9": 1,
		"1E3": 1000 * USD, "+1": USD, "0.100": 100_000_000, "1000000000": Max,
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0.0000000001", "1000000000.1", "1/2", "0x10", "1_0", "Inf", "NaN", "1e400", "1e", " 1", "--1"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d; want an error", text, got)
		}
	}
}

func TestAmountsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Amount(rapid.Int64Range(-int64(Max), int64(Max)).Draw(t, "amount"))
		raw, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(raw), `"` + string(raw) + `"`} {
			var got Amount
			if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
				t.Fatalf("%s came back as %d, %v; want %d", text, got, err, want)
			}
		}
	})
}

func TestCreditsAreTwoHundredADollar(t *testing.T) {
	for amount, want := range map[Amount]string{USD: "200", Credit: "1", 1: "0.0000002", -3 * USD / 2: "-300", 0: "0"} {
		if got := amount.Credits().String(); got != want {
			t.Errorf("%s USD = %s credits; want %s", amount, got, want)
		}
	}
}

func TestBillsRoundOnceHalfUp(t *testing.T) {
	quarter := Price(250_000_000) // 0.25 USD a million
	for _, tt := range []struct {
		units int64
		price Price
		by    Factor
		want  Amount
	}{
		{1000, quarter, One, 250_000},
		{1, quarter, One, 250},
		{1, 1, One, 0},             // a millionth of a nano-dollar
		{500_000, 1, One, 1},       // exactly half: up
		{499_999, 1, One, 0},       // just below
		{1, quarter, One / 2, 125}, // a factor
		{3, 166_667, One, 1},       // 0.500001
		{1 << 40, MaxPrice, MaxFactor, math.MaxInt64},
	} {
		var s Sum
		s.Tokens(tt.units, tt.price, tt.by)
		if got := s.Round(); got != tt.want {
			t.Errorf("%d x %s x %s = %d nano; want %d", tt.units, tt.price, tt.by, int64(got), int64(tt.want))
		}
	}
	var s Sum
	for range 4 { // four quarters of a nano make one: rounded once, not four times
		s.Tokens(250_000, 1, One)
	}
	if got := s.Round(); got != 1 {
		t.Errorf("four quarters = %d nano; want 1", int64(got))
	}
}

func TestBillsAgreeWithRationalArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sum
		exact := new(big.Rat)
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			units := rapid.Int64Range(0, 1<<40).Draw(t, "units")
			price := rapid.Int64Range(0, int64(MaxPrice)).Draw(t, "price")
			by := rapid.Int64Range(0, int64(MaxFactor)).Draw(t, "factor")
			part := new(big.Rat).SetFrac(
				new(big.Int).Mul(new(big.Int).Mul(big.NewInt(units), big.NewInt(price)), big.NewInt(by)), big.NewInt(1_000_000))
			if rapid.Bool().Draw(t, "each") {
				s.Each(units, Price(price), Factor(by))
			} else {
				s.Tokens(units, Price(price), Factor(by))
				part.Quo(part, big.NewRat(1_000_000, 1))
			}
			exact.Add(exact, part)
		}
		exact.Add(exact, big.NewRat(1, 2))
		want := new(big.Int).Div(exact.Num(), exact.Denom())
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if got := s.Round(); int64(got) != want.Int64() {
			t.Fatalf("got %d, want %s", int64(got), want)
		}
	})
}

func TestCreditsAreReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Amount{
		"0": 0, "1": Credit, "200": USD, "12.5": 62_500_000, "0.0000002": 1, "-1": -Credit, "2e2": USD, "200000000000": Max,
	} {
		got, err := ParseCredits(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
		if again, err := ParseCredits(got.Credits().String()); err != nil || again != got {
			t.Errorf("%s is shown as %s, which is %d, %v", text, got.Credits(), again, err)
		}
	}
	for _, text := range []string{"", "x", "0.0000001", "0.00000002", "200000000000.0000002", "1e30", "0x1", "NaN"} {
		if got, err := ParseCredits(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestProportion(t *testing.T) {
	t.Parallel()
	for _, test := range [][4]Price{ // price, by, of, result
		{125, 2500, 1250, 250}, {1, 1, 2, 1}, {1, 1, 3, 0}, {2, 1, 3, 1}, {0, 5, 7, 0}, {5, 0, 7, 0}, {5, 7, 0, 7},
		{MaxPrice, MaxPrice, MaxPrice, MaxPrice}, {MaxPrice, MaxPrice, 1, MaxPrice}, {MaxPrice, 3, 2, MaxPrice},
	} {
		if got := test[0].Proportion(test[1], test[2]); got != test[3] {
			t.Errorf("%d x %d / %d is %d, want %d", test[0], test[1], test[2], got, test[3])
		}
	}
}

func TestBillsTimesAFactor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		units    int64
		price    Price
		by       Factor
		half, up Amount
	}{
		{1000, 250_000_000, One, 250_000, 250_000},
		{1000, 250_000_000, 900_000, 225_000, 225_000},
		{1, 1, MaxFactor, 0, 1},       // a thousandth of a nano-dollar
		{4, 100_000, 1_300_000, 1, 1}, // 0.52
		{5, 100_000, 900_000, 0, 1},   // 0.45
		{5, 100_000, One, 1, 1},       // half: up
		{1, 0, MaxFactor, 0, 0},       // a free request stays free
		{0, MaxPrice, MaxFactor, 0, 0},
		{1 << 40, MaxPrice, 1, 109_951_162_777_600, 109_951_162_777_600},
		{1 << 40, MaxPrice, One, math.MaxInt64, math.MaxInt64},
		{1 << 40, MaxPrice, MaxFactor, math.MaxInt64, math.MaxInt64},
	} {
		var s Sum
		s.Tokens(tt.units, tt.price, One)
		if half, up := s.Charge(tt.by), s.Hold(tt.by); half != tt.half || up != tt.up {
			t.Errorf("%d x %s x %s = %d, rounded up %d; want %d and %d", tt.units, tt.price, tt.by, half, up, tt.half, tt.up)
		}
	}
}

func TestBillsTimesAFactorAgreeWithRationalArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Sum
		exact := new(big.Int)
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			units := rapid.Int64Range(0, 1<<40).Draw(t, "units")
			price := rapid.Int64Range(0, int64(MaxPrice)).Draw(t, "price")
			s.Tokens(units, Price(price), One)
			exact.Add(exact, new(big.Int).Mul(big.NewInt(units), big.NewInt(price)))
		}
		by := rapid.Int64Range(1, int64(MaxFactor)).Draw(t, "factor")
		exact.Mul(exact, big.NewInt(by))
		unit := big.NewInt(1_000_000_000_000)
		for _, tt := range []struct {
			got Amount
			add int64
		}{{s.Charge(Factor(by)), 500_000_000_000}, {s.Hold(Factor(by)), 999_999_999_999}} {
			want := new(big.Int).Add(exact, big.NewInt(tt.add))
			want.Quo(want, unit)
			if !want.IsInt64() {
				want.SetInt64(math.MaxInt64)
			}
			if int64(tt.got) != want.Int64() {
				t.Fatalf("got %d, want %s", tt.got, want)
			}
		}
		if s.Charge(One) != s.Round() {
			t.Fatalf("times one is %d, not %d", s.Charge(One), s.Round())
		}
	})
}

func TestPricesTimesAFactorAreExact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		price Price
		by    Factor
		want  string
	}{
		{250_000_000, 900_000, "0.225"}, {250_000_000, One, "0.25"}, {2_000_000_000, 1_500_000, "3"}, {0, 2_000_000, "0"},
		{1, 1, "0.000000000000001"}, {30_000_000, 333_333, "0.00999999"}, {MaxPrice, MaxFactor, "100000000"},
	} {
		if got := tt.price.Times(tt.by); got != tt.want {
			t.Errorf("%s x %s is shown as %s, want %s", tt.price, tt.by, got, tt.want)
		}
	}
}

// TestRound checks the rounding of amounts of both signs and at the limits.
func TestRound(t *testing.T) {
	for _, c := range []struct{ a, unit, want Amount }{{0, 10, 0}, {4, 10, 0}, {5, 10, 10}, {-4, 10, 0}, {-5, 10, -10}, {14, 10, 10},
		{15, 10, 20}, {-15, 10, -20}, {7, 1, 7}, {2, 3, 3}, {1, 3, 0}, {-2, 3, -3}, {math.MaxInt64, 10, math.MaxInt64 - 7},
		{math.MinInt64, 10, math.MinInt64 + 8}} {
		if got := c.a.Round(c.unit); got != c.want {
			t.Errorf("%d to %d: got %d, want %d", c.a, c.unit, got, c.want)
		}
	}
}
