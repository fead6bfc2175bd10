package fakepayment

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Settings of an operator at an EPay site.
const (
	EPayPID = "1001"
	EPayKey = "ZTUyMk4xMWM0eDg3OWJkYTdlMzE0YTVi"
)

// EPay is an EPay site with its cashier page, its api.php, and one operator.
type EPay struct {
	URL string
	// Now is the clock of orders.
	Now func() time.Time
	// Post sends messages as POST requests with a form, not as GET requests.
	Post bool
	// Refunds offers act=refund.
	Refunds bool

	t        testing.TB
	mu       sync.Mutex
	next     int
	orders   []*epayOrder // oldest first
	messages []url.Values
	notify   string // address of all messages; the address in an order is ignored
	down     int    // the status of all answers, if not 0
	hook     func(act string)
	calls    map[string]int // by act
}

type epayOrder struct {
	id, number, method, name, money, notifyURL, returnURL string
	created                                               time.Time
	status                                                int // 1 is paid, 2 is refunded
}

// NewEPay starts a site.
func NewEPay(t testing.TB) *EPay {
	s := &EPay{t: t, Now: time.Now, Refunds: true, calls: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// SendTo sets the address of the messages. An empty address sends none.
func (s *EPay) SendTo(address string) { s.mu.Lock(); s.notify = address; s.mu.Unlock() }

// SetDown makes api.php answer with a status. Zero ends this.
func (s *EPay) SetDown(status int) { s.mu.Lock(); s.down = status; s.mu.Unlock() }

// OnCall sets a function that is called after each call of api.php has had its effect and before it is
// answered.
func (s *EPay) OnCall(hook func(act string)) { s.mu.Lock(); s.hook = hook; s.mu.Unlock() }

// Calls returns the number of calls of api.php with an act.
func (s *EPay) Calls(act string) int { s.mu.Lock(); defer s.mu.Unlock(); return s.calls[act] }

// SignEPay adds the signature to parameters.
func SignEPay(q url.Values, key string) url.Values {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if name != "sign" && name != "sign_type" && q.Get(name) != "" {
			pairs = append(pairs, name+"="+q.Get(name))
		}
	}
	sum := md5.Sum([]byte(strings.Join(pairs, "&") + key))
	q.Set("sign", hex.EncodeToString(sum[:]))
	q.Set("sign_type", "MD5")
	return q
}

func (s *EPay) serve(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	switch {
	case r.URL.Path == "/submit.php":
		s.submit(w, r)
	case r.URL.Path == "/api.php":
		s.api(w, r)
	case strings.HasPrefix(r.URL.Path, "/cashier/"):
		s.cashier(w, r)
	default:
		http.NotFound(w, r)
	}
}

var (
	epayMoney  = regexp.MustCompile(`^[0-9]{1,9}(\.[0-9]{1,2})?$`)
	epayNumber = regexp.MustCompile(`^[a-zA-Z0-9._|-]{1,64}$`)
)

// submit creates the order of a signed address, or finds it again, and leads to its cashier page.
func (s *EPay) submit(w http.ResponseWriter, r *http.Request) {
	q := r.Form
	problem := ""
	switch got := q.Get("sign"); {
	case q.Get("pid") != EPayPID:
		problem = "商户不存在"
	case q.Get("sign_type") != "MD5" || SignEPay(maps.Clone(q), EPayKey).Get("sign") != got:
		problem = "签名校验失败"
	case !epayNumber.MatchString(q.Get("out_trade_no")):
		problem = "订单号(out_trade_no)格式不正确"
	case !epayMoney.MatchString(q.Get("money")) || strings.Trim(q.Get("money"), "0.") == "":
		problem = "金额不合法"
	case q.Get("notify_url") == "" || q.Get("return_url") == "" || q.Get("name") == "":
		problem = "notify_url, return_url, name不能为空"
	case q.Get("type") != "alipay" && q.Get("type") != "wxpay":
		problem = "支付方式(type)不存在"
	}
	if problem != "" {
		http.Error(w, problem, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	o := s.find(func(o *epayOrder) bool { return o.number == q.Get("out_trade_no") })
	if o == nil {
		s.next++
		o = &epayOrder{id: fmt.Sprintf("2026112900%06d", s.next), number: q.Get("out_trade_no"), method: q.Get("type"), name: q.Get("name"),
			money: q.Get("money"), notifyURL: q.Get("notify_url"), returnURL: q.Get("return_url"), created: s.Now()}
		s.orders = append(s.orders, o)
	}
	paid := o.status != 0
	s.mu.Unlock()
	if paid {
		http.Error(w, "该订单已支付", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, "/cashier/"+o.id, http.StatusFound)
}

// find returns an order. The caller holds the lock.
func (s *EPay) find(is func(*epayOrder) bool) *epayOrder {
	for _, o := range s.orders {
		if is(o) {
			return o
		}
	}
	return nil
}

// cashier is the page of an order.
func (s *EPay) cashier(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Path, "/cashier/")
	s.mu.Lock()
	o := s.find(func(o *epayOrder) bool { return o.id == id })
	s.mu.Unlock()
	if o == nil {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		s.Pay(o.number)
		join := "?"
		if strings.Contains(o.returnURL, "?") {
			join = "&"
		}
		http.Redirect(w, r, o.returnURL+join+s.message(o).Encode(), http.StatusSeeOther)
		return
	}
	fmt.Fprintf(w, `<!doctype html><title>收银台</title><h1>%s %s 元 (%s)</h1><form method="post"><button>支付</button></form>`,
		html.EscapeString(o.name), o.money, html.EscapeString(o.method))
}

// message returns the signed parameters of the message about an order.
func (s *EPay) message(o *epayOrder) url.Values {
	return SignEPay(url.Values{"pid": {EPayPID}, "trade_no": {o.id}, "out_trade_no": {o.number}, "type": {o.method}, "name": {o.name},
		"money": {o.money}, "trade_status": {"TRADE_SUCCESS"}}, EPayKey)
}

// Visit opens the page of a top-up as a customer does, which creates the site's order. It returns the
// order's cashier page.
func (s *EPay) Visit(address string) (page string) {
	s.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("the page of an order: got %d, %v: %s", resp.StatusCode, err, body)
	}
	return resp.Request.URL.String()
}

// Pay pays the order of a top-up and sends its message once.
func (s *EPay) Pay(number string) {
	s.mu.Lock()
	o := s.find(func(o *epayOrder) bool { return o.number == number })
	if o == nil || o.status != 0 {
		s.mu.Unlock()
		return
	}
	o.status = 1
	q := s.message(o)
	s.messages = append(s.messages, q)
	s.mu.Unlock()
	s.Send(q)
}

// Messages returns all messages so far, in order.
func (s *EPay) Messages() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Send sends a message once, and reports whether it was acknowledged. Otherwise the site would repeat it.
func (s *EPay) Send(q url.Values) bool {
	s.mu.Lock()
	address, post := s.notify, s.Post
	s.mu.Unlock()
	if address == "" {
		return false
	}
	var resp *http.Response
	var err error
	if post {
		resp, err = http.PostForm(address, q)
	} else {
		resp, err = http.Get(address + "?" + q.Encode())
	}
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && strings.TrimSpace(string(body)) == "success"
}

// Change changes the money, method or status of a top-up's order without a message.
func (s *EPay) Change(number, field, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.find(func(o *epayOrder) bool { return o.number == number })
	switch field {
	case "money":
		o.money = value
	case "type":
		o.method = value
	case "out_trade_no":
		o.number = value
	case "status":
		o.status, _ = strconv.Atoi(value)
	default:
		s.t.Fatalf("unknown field %q", field)
	}
}

func (s *EPay) api(w http.ResponseWriter, r *http.Request) {
	act := r.URL.Query().Get("act")
	s.mu.Lock()
	status, down := http.StatusOK, s.down
	var answer object
	if down == 0 {
		answer = s.answer(act, r)
	} else {
		status, answer = down, object{"code": -9, "msg": "down"}
	}
	s.calls[act]++
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook(act)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *EPay) answer(act string, r *http.Request) object {
	q := r.URL.Query()
	if act == "refund" {
		if q = r.PostForm; r.Method != http.MethodPost || !s.Refunds {
			return object{"code": -5, "msg": "No Act!"}
		}
	}
	if q.Get("pid") != EPayPID || q.Get("key") != EPayKey {
		return object{"code": -3, "msg": "商户密钥错误"}
	}
	switch act {
	case "order":
		o := s.find(func(o *epayOrder) bool { return o.number == q.Get("out_trade_no") })
		if o == nil {
			return object{"code": -1, "msg": "订单号不存在"}
		}
		answer := o.object()
		answer["code"], answer["msg"] = 1, "查询订单号成功！"
		return answer
	case "orders":
		return s.list(q)
	case "refund":
		o := s.find(func(o *epayOrder) bool { return o.id == q.Get("trade_no") })
		switch {
		case o == nil:
			return object{"code": -1, "msg": "订单号不存在"}
		case o.status != 1:
			return object{"code": -1, "msg": "只能退款已支付的订单"}
		case q.Get("money") != o.money:
			return object{"code": -1, "msg": "退款金额与原订单不一致"}
		}
		o.status = 2
		return object{"code": 1, "msg": "退款成功"}
	}
	return object{"code": -5, "msg": "No Act!"}
}

// object returns an order as api.php does: numbers as numbers, money as a text.
func (o *epayOrder) object() object {
	pid, _ := strconv.Atoi(EPayPID)
	return object{"trade_no": o.id, "out_trade_no": o.number, "type": o.method, "pid": pid, "name": o.name, "money": o.money,
		"addtime": o.created.In(time.FixedZone("CST", 8*60*60)).Format(time.DateTime), "status": o.status}
}

func (s *EPay) list(q url.Values) object {
	limit, _ := strconv.Atoi(q.Get("limit"))
	page, _ := strconv.Atoi(q.Get("page"))
	limit, page = min(max(limit, 1), 50), max(page, 1)
	data := []object{}
	for i, o := range slices.Backward(s.orders) {
		if n := len(s.orders) - 1 - i; n >= (page-1)*limit && n < page*limit {
			data = append(data, o.object())
		}
	}
	return object{"code": 1, "msg": "查询结算记录成功！", "data": data}
}
