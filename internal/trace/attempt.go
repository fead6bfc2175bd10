package trace

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// AttemptStart describes an attempt on a line at its start.
type AttemptStart struct {
	// Operation is Chat, or Generate for a job.
	Operation Operation
	Line      string
	// Provider is the name of the line's adapter, BaseURL is the line's address, and Model is the
	// provider's id of the model.
	Provider, BaseURL, Model string
	Stream                   bool
}

// Operation is the operation name of the GenAI conventions.
type Operation string

// The operations.
const (
	Chat     Operation = "chat"
	Generate Operation = "generate_content"
)

// Attempt starts the span of an attempt on a line, in the GenAI conventions. Callers must call End.
func (s *Span) Attempt(a AttemptStart) *Span {
	if s == nil {
		return nil
	}
	return s.tracer.attempt(s.context(), a)
}

// JobAttempt starts the span of a job's attempt. It has its own trace, because the submission's
// trace may have ended long ago on another node. Callers must call End.
func (t *Tracer) JobAttempt(a AttemptStart, job, account string) *Span {
	if t == nil {
		return nil
	}
	s := t.attempt(context.Background(), a)
	s.span.SetAttributes(attrJob.String(job), attrAccount.String(account))
	return s
}

func (t *Tracer) attempt(ctx context.Context, a AttemptStart) *Span {
	host, port := addressOf(a.BaseURL)
	attributes := append(make([]attribute.KeyValue, 0, 8), semconv.GenAIOperationNameKey.String(string(a.Operation)),
		providerOf(a.Provider, host), semconv.GenAIRequestModel(a.Model), attrLine.String(a.Line))
	if a.Stream {
		attributes = append(attributes, semconv.GenAIRequestStream(true))
	}
	if host != "" {
		attributes = append(attributes, semconv.ServerAddress(host), semconv.ServerPort(port))
	}
	_, span := t.spans.Start(ctx, string(a.Operation)+" "+a.Model, oteltrace.WithSpanKind(oteltrace.SpanKindClient),
		oteltrace.WithAttributes(attributes...))
	return &Span{span: span, tracer: t}
}

// Status records the HTTP status of a provider's answer, 0 if there was none.
func (s *Span) Status(status int) {
	if s == nil || status == 0 {
		return
	}
	s.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
}

// FirstChunk records the time from the request to the start of its answer.
func (s *Span) FirstChunk(elapsed time.Duration) {
	if s == nil {
		return
	}
	s.span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(elapsed.Seconds()))
}

// Answer records the model and id in an answer. Empty values are ignored.
func (s *Span) Answer(model, id string) {
	if s == nil {
		return
	}
	if model != "" {
		s.span.SetAttributes(semconv.GenAIResponseModel(model))
	}
	if id != "" {
		s.span.SetAttributes(semconv.GenAIResponseID(id))
	}
}

// FinishReasons records finish reasons by choice index. Empty reasons are unknown.
func (s *Span) FinishReasons(reasons []string) {
	if s == nil {
		return
	}
	known := slices.DeleteFunc(slices.Clone(reasons), func(reason string) bool { return reason == "" })
	if len(known) > 0 {
		s.span.SetAttributes(semconv.GenAIResponseFinishReasons(known...))
	}
}

// Usage records the token counts of an answer. The prompt tokens include the cached tokens.
func (s *Span) Usage(prompt, cached, completion int64) {
	if s == nil {
		return
	}
	s.span.SetAttributes(semconv.GenAIUsageInputTokens(int(prompt)), semconv.GenAIUsageOutputTokens(int(completion)))
	if cached > 0 {
		s.span.SetAttributes(semconv.GenAIUsageCacheReadInputTokens(int(cached)))
	}
}

// providerOf returns the provider's name in the GenAI conventions, by host if known, else by adapter.
func providerOf(adapter, host string) attribute.KeyValue {
	for domain, name := range map[string]attribute.KeyValue{
		"cohere.ai":     semconv.GenAIProviderNameCohere,
		"cohere.com":    semconv.GenAIProviderNameCohere,
		"deepseek.com":  semconv.GenAIProviderNameDeepseek,
		"groq.com":      semconv.GenAIProviderNameGroq,
		"mistral.ai":    semconv.GenAIProviderNameMistralAI,
		"perplexity.ai": semconv.GenAIProviderNamePerplexity,
		"x.ai":          semconv.GenAIProviderNameXAI,
	} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return name
		}
	}
	switch adapter {
	case "openai":
		return semconv.GenAIProviderNameOpenAI
	case "anthropic":
		return semconv.GenAIProviderNameAnthropic
	case "gemini":
		return semconv.GenAIProviderNameGCPGemini
	case "vertex":
		return semconv.GenAIProviderNameGCPVertexAI
	case "azure":
		return semconv.GenAIProviderNameAzureAIInference
	case "bedrock":
		return semconv.GenAIProviderNameAWSBedrock
	}
	return semconv.GenAIProviderNameKey.String(adapter)
}

// addressOf returns the host and port of a base address, or an empty host if the address is invalid.
func addressOf(base string) (host string, port int) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return "", 0
	}
	if port, err = strconv.Atoi(u.Port()); err != nil {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()), port
}
