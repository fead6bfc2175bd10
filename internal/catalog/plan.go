package catalog

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// Plan is the output requested by an image or video submission, and the basis of the job's bill. It
// is stored with the job.
type Plan struct {
	// Tier is the resolution tier (`1K`, `720p`) in the catalog's spelling, never empty.
	Tier string `json:"tier"`
	// Larger is true if the model also has a smaller tier. The provider must then be asked for the
	// tier.
	Larger bool `json:"larger,omitempty"`
	// Ratio is the aspect ratio in the catalog's spelling. If empty, the provider chooses.
	Ratio string `json:"ratio,omitempty"`
	// Width and Height are in pixels: the user's values if Exact, otherwise the values of tier and
	// ratio, or 0 without a ratio.
	Width  int  `json:"width,omitempty"`
	Height int  `json:"height,omitempty"`
	Exact  bool `json:"exact,omitempty"`
	// Seconds is the length of a clip. If 0, the provider chooses.
	Seconds int64 `json:"seconds,omitempty"`
	// Count is the number of images, 1 for a video.
	Count int64 `json:"count"`
	// Factor is the account's factor when the job was submitted. It multiplies every price. Zero
	// means 1.
	Factor money.Factor `json:"factor,omitempty"`
}

// ImageRequest has the fields of an image submission that determine its plan.
type ImageRequest struct {
	Size       string // a ratio, pixels or a tier; the default if empty or `auto`
	Resolution string // a tier; the default if empty or `auto`
	Ratio      string // the ratio of Size or the default if empty or `auto`
	RatioParam string // the field of the ratio, for errors; ratio by default
	N          int64  // number of images; 0 means 1
	References int    // number of references
	// ReferencesParam is the field of the references, for errors; image by default.
	ReferencesParam string
	Choices
}

// VideoRequest has the fields of a video submission that determine its plan.
type VideoRequest struct {
	Resolution string // a tier; the default if empty or `auto`
	Ratio      string // the default if empty or `auto`
	RatioParam string // the field of the ratio, for errors; ratio by default
	Duration   string // seconds, as a JSON number; the default if empty
	References int    // number of references
	// ReferencesParam is the field of the references, for errors; image by default.
	ReferencesParam string
	Choices
}

// Choices are the fields of a submission that only some models accept.
type Choices struct {
	// Audio is the submission's setting for sound, or nil.
	Audio *bool
	// Params are the submission's fields among jobrequest.ChoiceNames.
	Params []string
	// Roles are the roles of the references, with the field of each.
	Roles []Role
}

// Role is the role of a reference, and the field that has the role.
type Role struct{ Name, Param string }

// checkChoices returns an error for a choice that the model does not offer, with the field as
// param.
func (m *Model) checkChoices(c Choices) error {
	for _, name := range c.Params {
		if !slices.Contains(m.Params, name) {
			return fault.At(fault.InvalidRequest, name, "Model %s takes no `%s`. Leave it out, or use another model.", m.ID, name)
		}
	}
	for _, role := range c.Roles {
		switch {
		case slices.Contains(m.Roles, role.Name):
		case len(m.Roles) == 0:
			return fault.At(fault.InvalidRequest, role.Param, "Model %s takes no roles of references. Leave them out, or use another model.", m.ID)
		default:
			return fault.At(fault.InvalidRequest, role.Param, "Model %s takes no %s. Its roles of references are %s.", m.ID, role.Name,
				strings.Join(m.Roles, ", "))
		}
	}
	if c.Audio == nil || m.Audio == SoundOptional {
		return nil
	}
	switch requested := Sound(strconv.FormatBool(*c.Audio)); {
	case m.Audio == SoundUnset:
		return fault.At(fault.InvalidRequest, "audio", "Model %s takes no `audio`. Leave it out, or use another model.", m.ID)
	case m.Audio != requested:
		return fault.At(fault.InvalidRequest, "audio", "`audio` is always %s for model %s. Leave it out, or use another model.", m.Audio, m.ID)
	}
	return nil
}

// SoundSetting returns the sound setting to send to the line. It is fixed by the model or comes
// from the submission. If nil, the line gets no setting.
func (m *Model) SoundSetting(requested *bool) *bool {
	if m.Audio == SoundOn || m.Audio == SoundOff {
		isOn := m.Audio == SoundOn
		return &isOn
	}
	return requested
}

// PlanImage returns the plan of an image submission. The error is a 400 with the field as param,
// and has the code unsupported_resolution for a tier that the model does not offer, otherwise
// invalid_request.
func (m *Model) PlanImage(req ImageRequest) (Plan, error) {
	p := Plan{Tier: m.Tiers[0].Name, Count: max(req.N, 1)}
	if req.N < 0 || req.N > m.MaxImages {
		return p, fault.At(fault.InvalidRequest, "n", "`n` must be an integer from 1 to %d for model %s.", m.MaxImages, m.ID)
	}
	if err := m.planTier(&p, req.Resolution, fault.UnsupportedResolution); err != nil {
		return p, err
	}
	if err := m.planSize(&p, req.Size, !isDefault(req.Resolution)); err != nil {
		return p, err
	}
	if err := m.planRatio(&p, req.Ratio, req.RatioParam); err != nil {
		return p, err
	}
	return p, m.completePlan(&p, req.References, req.ReferencesParam, req.Choices, imageSideMultiple)
}

// planTier sets p's tier from `resolution`.
func (m *Model) planTier(p *Plan, resolution string, code fault.Code) error {
	if isDefault(resolution) {
		return nil
	}
	tier, ok := m.tier(resolution)
	if !ok {
		return m.tierError(code, "resolution", resolution)
	}
	p.Tier = tier.Name
	return nil
}

// completePlan checks the references and choices and fills in the ratio and the pixels. A
// submission with references keeps the provider's ratio.
func (m *Model) completePlan(p *Plan, references int, param string, c Choices, multiple int64) error {
	if err := m.checkReferences(references, param); err != nil {
		return err
	}
	if err := m.checkChoices(c); err != nil {
		return err
	}
	if p.Ratio == "" && references == 0 && len(m.Ratios) > 0 {
		p.Ratio = m.Ratios[0]
	}
	p.Larger = m.isLarger(p.Tier)
	p.setPixels(multiple)
	return nil
}

// planSize sets p's tier, ratio and pixels from `size`. tierSet is true if `resolution` has set the
// tier.
func (m *Model) planSize(p *Plan, size string, tierSet bool) error {
	if isDefault(size) {
		return nil
	}
	if looksLikeTier(size) {
		tier, ok := m.tier(size)
		switch {
		case !ok:
			return m.tierError(fault.UnsupportedResolution, "size", size)
		case tierSet && tier.Name != p.Tier:
			return fault.At(fault.InvalidRequest, "size", "`size` %s and `resolution` %s contradict each other. Leave one of them out.",
				tier.Name, p.Tier)
		}
		p.Tier = tier.Name
		return nil
	}
	if w, h, ok := parsePair(size, ":"); ok {
		ratio, err := m.ratio(w, h, size, "size")
		p.Ratio = ratio
		return err
	}
	w, h, ok := parsePair(strings.ToLower(size), "x")
	if !ok {
		return fault.At(fault.InvalidRequest, "size",
			"`size` must be a ratio such as 16:9, pixels such as 1024x1024, a tier (%s) or auto.", m.tierNames())
	}
	tier, ok := m.tierFor(w, h)
	if !ok {
		return fault.At(fault.UnsupportedResolution, "size", "Model %s offers nothing as large as %s. Its tiers are %s.", m.ID, quote(size),
			m.tierNames())
	}
	if tierSet && tier != p.Tier {
		return fault.At(fault.InvalidRequest, "size", "`size` %s belongs to tier %s, but `resolution` is %s. Leave one of them out.", quote(size),
			tier, p.Tier)
	}
	ratio, err := m.ratio(w, h, size, "size")
	if err != nil {
		return err
	}
	p.Tier, p.Ratio, p.Width, p.Height, p.Exact = tier, ratio, int(w), int(h), true
	return nil
}

// planRatio sets p's ratio from `ratio`. The ratio may repeat the ratio in `size`.
func (m *Model) planRatio(p *Plan, ratio, param string) error {
	if isDefault(ratio) {
		return nil
	}
	param = cmp.Or(param, "ratio")
	w, h, ok := parsePair(ratio, ":")
	if !ok {
		return fault.At(fault.InvalidRequest, param, "`%s` must be a ratio such as 16:9, or auto.", param)
	}
	modelRatio, err := m.ratio(w, h, ratio, param)
	switch {
	case err != nil:
		return err
	case p.Ratio != "" && p.Ratio != modelRatio:
		return fault.At(fault.InvalidRequest, param, "`%s` %s and `size`, whose ratio is %s, contradict each other. Leave one of them out.",
			param, modelRatio, p.Ratio)
	}
	p.Ratio = modelRatio
	return nil
}

// PlanVideo returns the plan of a video submission. The error is a 400 invalid_request with the
// field as param.
func (m *Model) PlanVideo(req VideoRequest) (Plan, error) {
	p := Plan{Tier: m.Tiers[0].Name, Count: 1}
	err := m.planTier(&p, req.Resolution, fault.InvalidRequest)
	if err != nil {
		return p, err
	}
	if err := m.planRatio(&p, req.Ratio, req.RatioParam); err != nil {
		return p, err
	}
	if p.Seconds, err = m.seconds(req.Duration); err != nil {
		return p, err
	}
	return p, m.completePlan(&p, req.References, req.ReferencesParam, req.Choices, videoSideMultiple)
}

// Replan plans the output of p again with the current version of the model, without references. p
// comes from an earlier version.
func (m *Model) Replan(p Plan) (Plan, error) {
	switch {
	case m.Kind == KindVideo:
		return m.PlanVideo(VideoRequest{Resolution: p.Tier, Ratio: p.Ratio, RatioParam: "aspect_ratio",
			Duration: strconv.FormatInt(p.Seconds, 10)})
	case p.Exact:
		return m.PlanImage(ImageRequest{Size: fmt.Sprintf("%dx%d", p.Width, p.Height), N: p.Count})
	}
	return m.PlanImage(ImageRequest{Resolution: p.Tier, Ratio: p.Ratio, RatioParam: "aspect_ratio", N: p.Count})
}

// PlanHold returns the hold for a plan, which is the cost of its complete delivery, rounded up if
// there is a factor.
func (m *Model) PlanHold(p Plan) money.Amount {
	s := m.planBill(p, p.Count)
	return s.Hold(p.Factor)
}

// PlanCost returns the cost of a plan after the delivery of some images, or of the clip (1). The
// cost is exact to half a nano-dollar, never negative, and never more than the hold. A plan with a
// tier unknown to the model cannot be billed, so its cost is above every possible hold.
func (m *Model) PlanCost(p Plan, delivered int64) money.Amount {
	s := m.planBill(p, delivered)
	return s.Charge(p.Factor)
}

// planBill returns the bill for the delivered units at the model's prices.
func (m *Model) planBill(p Plan, delivered int64) (s money.Sum) {
	tier, ok := m.tier(p.Tier)
	if !ok {
		return money.Unbillable()
	}
	s.Each(m.units(p, delivered), tier.Price, money.One)
	return s
}

// units returns the number of priced units of a plan after a delivery: images, clips or seconds.
func (m *Model) units(p Plan, delivered int64) int64 {
	units := clamp(delivered, clamp(p.Count, maxUnits))
	if m.Kind == KindVideo && !m.PerClip {
		units = min(units, 1) * clamp(p.Seconds, maxUnits)
	}
	return units
}

// isDefault reports whether a field is empty or `auto`.
func isDefault(text string) bool { return text == "" || strings.EqualFold(text, "auto") }

// tier finds a tier by its name, ignoring case.
func (m *Model) tier(name string) (Tier, bool) {
	for _, t := range m.Tiers {
		if strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return Tier{}, false
}

// tierError returns the error for a tier that the model does not offer.
func (m *Model) tierError(code fault.Code, param, name string) error {
	return fault.At(code, param, "Model %s does not offer the resolution %s. Its tiers are %s.", m.ID, quote(name), m.tierNames())
}

func (m *Model) tierNames() string {
	names := make([]string, len(m.Tiers))
	for i, t := range m.Tiers {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// looksLikeTier reports whether a text has the format of a tier.
func looksLikeTier(text string) bool {
	if len(text) < 2 || !strings.ContainsAny(text[len(text)-1:], "kKpP") {
		return false
	}
	return strings.Trim(text[:len(text)-1], "0123456789") == ""
}

// parseTier returns the number in a tier's name. lines is true if the number counts lines (`720p`).
func parseTier(name string) (n int64, lines bool) {
	n, _ = strconv.ParseInt(name[:len(name)-1], 10, 64) // cannot fail: tiers in the catalog have digits
	return n, strings.HasSuffix(name, "p")
}

// tierFor returns the smallest tier for w x h pixels. `NK` has up to 1.5 x (1024 N)^2 pixels, and
// `Np` has a shorter side of up to N pixels.
func (m *Model) tierFor(w, h int64) (string, bool) {
	best, smallest := "", int64(math.MaxInt64)
	for _, t := range m.Tiers {
		n, lines := parseTier(t.Name)
		area, fits := tierArea(t.Name), 2*w*h <= 3*(1024*n)*(1024*n)
		if lines {
			fits = min(w, h) <= n
		}
		if fits && area < smallest {
			best, smallest = t.Name, area
		}
	}
	return best, best != ""
}

// tierArea returns the typical number of pixels of a tier.
func tierArea(name string) int64 {
	n, lines := parseTier(name)
	if lines {
		return n * n * 16 / 9
	}
	return (1024 * n) * (1024 * n)
}

// isLarger reports whether the model has a smaller tier than tier.
func (m *Model) isLarger(tier string) bool {
	return slices.ContainsFunc(m.Tiers, func(t Tier) bool { return tierArea(t.Name) < tierArea(tier) })
}

// maxSide bounds each number of a size. It is larger than the sides of any tier.
const maxSide = 1_000_000

// parsePair parses two whole numbers with a separator between them. Each must be at least 1.
// Numbers above maxSide become maxSide.
func parsePair(text, separator string) (a, b int64, ok bool) {
	first, second, found := strings.Cut(text, separator)
	if !found {
		return 0, 0, false
	}
	for _, side := range []struct {
		text   string
		target *int64
	}{{first, &a}, {second, &b}} {
		if side.text == "" || len(side.text) > 64 || strings.Trim(side.text, "0123456789") != "" {
			return 0, 0, false
		}
		n, err := strconv.ParseInt(side.text, 10, 64)
		if err != nil || n > maxSide {
			n = maxSide
		}
		*side.target = n
	}
	return a, b, a > 0 && b > 0
}

// maxRatio bounds the ratios of models without a list of ratios.
const maxRatio = 20

// ratio returns the model's ratio within two percent of w:h, the nearest if there are several. A
// model without a list of ratios accepts ratios up to maxRatio.
func (m *Model) ratio(w, h int64, text, param string) (string, error) {
	if len(m.Ratios) == 0 {
		if max(w, h) > maxRatio*min(w, h) {
			return "", fault.At(fault.InvalidRequest, param, "The ratio of `%s` must be between 1:%d and %d:1.", param, maxRatio, maxRatio)
		}
		d := new(big.Int).GCD(nil, nil, big.NewInt(w), big.NewInt(h)).Int64()
		return strconv.FormatInt(w/d, 10) + ":" + strconv.FormatInt(h/d, 10), nil
	}
	best, nearest := "", int64(math.MaxInt64)
	for _, name := range m.Ratios {
		a, b, _ := parsePair(name, ":")
		// w:h is within 2 % of a:b when |wb - ha| * 100 <= 2 ha. All numbers are
		// below 10^6 x 10^5.
		difference := w*b - h*a
		if difference < 0 {
			difference = -difference
		}
		if difference*100 > 2*h*a {
			continue
		}
		if share := difference * 10_000 / (h * a); share < nearest {
			best, nearest = name, share
		}
	}
	if best == "" {
		return "", fault.At(fault.InvalidRequest, param, "Model %s does not offer the ratio of %s. Its ratios are %s.",
			m.ID, quote(text), strings.Join(m.Ratios, ", "))
	}
	return best, nil
}

// checkReferences returns an error for more references than the model accepts.
func (m *Model) checkReferences(n int, param string) error {
	param = cmp.Or(param, "image")
	switch {
	case int64(n) <= m.MaxReferences:
		return nil
	case m.MaxReferences == 0:
		return fault.At(fault.InvalidRequest, param, "Model %s takes no references. Leave `%s` out, or use another model.", m.ID, param)
	}
	return fault.At(fault.InvalidRequest, param, "Model %s takes at most %d references, not %d.", m.ID, m.MaxReferences, n)
}

// seconds returns the length of a clip. duration is the submission's.
func (m *Model) seconds(duration string) (int64, error) {
	d := m.Durations
	if duration == "" {
		return d.Default(), nil
	}
	n, ok := wholeSeconds(duration)
	switch {
	case len(d.List) == 0 && d.Max == 0:
		return 0, fault.At(fault.InvalidRequest, "duration", "Model %s chooses the length of its clips. Leave `duration` out.", m.ID)
	case len(d.List) > 0:
		if ok && slices.Contains(d.List, n) {
			return n, nil
		}
		return 0, fault.At(fault.InvalidRequest, "duration", "`duration` must be one of %s seconds for model %s.",
			strings.ReplaceAll(strings.Trim(fmt.Sprint(d.List), "[]"), " ", ", "), m.ID)
	case !ok || n < d.Min || n > d.Max:
		return 0, fault.At(fault.InvalidRequest, "duration", "`duration` must be whole seconds from %d to %d for model %s.", d.Min, d.Max, m.ID)
	}
	return n, nil
}

// wholeSeconds parses a JSON number with a whole value, in any notation (5, 5.0, 0.5e1).
func wholeSeconds(text string) (int64, bool) {
	if len(text) > 64 {
		return 0, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 { // a large exponent would make big.Rat allocate too much
		if exp, err := strconv.Atoi(text[i+1:]); err != nil || exp > 30 || exp < -30 {
			return 0, false
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// The sides of a picture, computed from tier and ratio, are multiples of these numbers of pixels.
const (
	imageSideMultiple = 16
	videoSideMultiple = 2
)

// setPixels computes Width and Height from tier and ratio, unless the user set them.
func (p *Plan) setPixels(multiple int64) {
	if p.Exact || p.Ratio == "" {
		return
	}
	a, b, _ := parsePair(p.Ratio, ":")
	n, lines := parseTier(p.Tier)
	round := func(side float64) int { return int(max(1, int64(math.Round(side/float64(multiple))))) * int(multiple) }
	if !lines {
		side := 1024 * float64(n)
		p.Width, p.Height = round(side*math.Sqrt(float64(a)/float64(b))), round(side*math.Sqrt(float64(b)/float64(a)))
		return
	}
	long := round(float64(n) * float64(max(a, b)) / float64(min(a, b)))
	if p.Width, p.Height = long, int(n); a < b {
		p.Width, p.Height = int(n), long
	}
}
