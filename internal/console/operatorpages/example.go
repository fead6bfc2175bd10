package operatorpages

import "tollgate/internal/console/ui"

// examples returns example catalogs. The models and lines of several examples can stand in one catalog.
func examples() ui.Snippets {
	return ui.Snippets{ID: "example", Tabs: []ui.Snippet{{Name: "Chat", Text: chatExample}, {Name: "Images", Text: imageExample},
		{Name: "Videos", Text: videoExample}}}
}

const chatExample = `models:
  - id: swift-1                      # the name your customers use
    kind: chat
    context_window: 128000
    max_output_tokens: 16384
    price: {input: 0.25, output: 2.00}   # the price for customers, US dollars a million tokens
lines:
  - id: main                         # a connection to a provider; a model may have several
    provider: openai                 # the provider's API: openai, anthropic, gemini ...
    base_url: https://api.example.com/v1
    api_key: ${EXAMPLE_API_KEY}      # an environment variable, never the key itself
    models: {swift-1: vendor-model-name}
    cost: {input: 0.15, output: 1.20}    # the provider's price, to show your margin
`

const imageExample = `models:
  - id: easel-1
    kind: image
    price: {1K: 0.03, 2K: 0.05}      # US dollars an image, by size
    ratios: ["1:1", "16:9", "9:16"]
    max_images: 4
lines:
  - id: pictures
    provider: openai
    base_url: https://api.example.com/v1
    api_key: ${EXAMPLE_API_KEY}
    models: {easel-1: vendor-image-model}
    cost: {easel-1: {1K: 0.02, 2K: 0.04}}
`

const videoExample = `models:
  - id: reel-1
    kind: video
    price: {720p: 0.05, 1080p: 0.09} # US dollars a second of video
    durations: [5, 10]
    ratios: ["16:9", "9:16"]
lines:
  - id: clips
    provider: ark
    api_key: ${EXAMPLE_API_KEY}
    models: {reel-1: vendor-video-model}
    cost: {reel-1: {720p: 0.03, 1080p: 0.06}}
`
