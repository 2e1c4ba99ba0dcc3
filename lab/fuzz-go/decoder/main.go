// Reads request bodies with encoding/json, as an engine in Go does, and prints what it has read: one JSON object for each
// line of standard input, which is a body in base64.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"os"
)

type message struct {
	Role      json.RawMessage `json:"role,omitempty"`
	Content   any             `json:"content,omitempty"`
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

// The members that the gateway reads. Scalars have the types of Ollama's structs, so that null leaves what was there. What
// is absent is left out of the answer.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream,omitempty"`
	N             *int   `json:"n,omitempty"`
	StreamOptions *struct {
		IncludeUsage         bool `json:"include_usage,omitempty"`
		ContinuousUsageStats bool `json:"continuous_usage_stats,omitempty"`
	} `json:"stream_options,omitempty"`
	PreviousResponseID  string `json:"previous_response_id,omitempty"`
	MaxTokens           *int   `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int   `json:"max_completion_tokens,omitempty"`
	MaxOutputTokens     *int   `json:"max_output_tokens,omitempty"`
	ReasoningEffort     string `json:"reasoning_effort,omitempty"`
	Reasoning           *struct {
		Effort string `json:"effort,omitempty"`
	} `json:"reasoning,omitempty"`
	OutputConfig *struct {
		Effort string `json:"effort,omitempty"`
	} `json:"output_config,omitempty"`
	Conversation *struct {
		ID string `json:"id,omitempty"`
	} `json:"conversation,omitempty"`
	PromptCacheKey string          `json:"prompt_cache_key,omitempty"`
	Tools          json.RawMessage `json:"tools,omitempty"`
	Messages       *[]message      `json:"messages,omitempty"`
	Prompt         json.RawMessage `json:"prompt,omitempty"`
	Input          json.RawMessage `json:"input,omitempty"`
	Instructions   json.RawMessage `json:"instructions,omitempty"`
	System         json.RawMessage `json:"system,omitempty"`
}

type answer struct {
	Error   string   `json:"error,omitempty"`
	Request *request `json:"request,omitempty"`
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		body, err := base64.StdEncoding.DecodeString(line[:len(line)-1])
		if err != nil {
			panic(err)
		}
		var read request
		given := answer{Request: &read}
		if err := json.Unmarshal(body, &read); err != nil {
			given = answer{Error: "refused"}
		}
		if err := encoder.Encode(given); err != nil {
			panic(err)
		}
		// The other side waits for the answers to all that it has sent.
		if lines.Buffered() == 0 {
			out.Flush()
		}
	}
	out.Flush()
}
