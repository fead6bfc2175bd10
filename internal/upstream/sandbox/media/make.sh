#!/usr/bin/env bash
# Makes the pictures and clips of this folder from its SVG files. It needs
# rsvg-convert (librsvg2-bin), convert (imagemagick), ffmpeg and the font DejaVu
# Sans. Run it after a change to a drawing, and look at the results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for name in hills night sea shapes; do
  rsvg-convert "$name.svg" -o "$work/$name.png"
  convert "$work/$name.png" -strip -dither None -colors 24 -define png:compression-level=9 "PNG8:$name.png"
done

# Each clip has 100 frames. Its duration is 5 seconds and 3,603,600 ticks in all
# headers: media.go changes the ticks of a second to change the duration.
for size in 1280x720 720x1280 720x720 1920x1080 1080x1920 1080x1080; do
  width=${size%x*} height=${size#*x}
  sed "s/width=\"1024\" height=\"1024\" v/width=\"$width\" height=\"$height\" v/" hills.svg >"$work/hills.svg"
  rsvg-convert "$work/hills.svg" -o "$work/hills.png"
  side=$(((width < height ? width : height) / 8))
  printf '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" width="%d" height="%d"><circle cx="50" cy="40" r="38" fill="#d95f43"/><path d="M40 80 H60 V98 H40 Z" fill="#7a3f2b"/></svg>' \
    "$side" "$side" >"$work/balloon.svg"
  rsvg-convert "$work/balloon.svg" -o "$work/balloon.png"
  ffmpeg -v error -y -loop 1 -r 20 -i "$work/hills.png" -loop 1 -r 20 -i "$work/balloon.png" -frames:v 100 \
    -filter_complex "overlay=x='2*floor((W-w)*n/198)':y='2*floor(H/10)',format=yuv420p" \
    -c:v libx264 -profile:v main -preset veryslow -crf 34 -bf 0 -refs 2 -g 50 -threads 1 -map_metadata -1 -fflags +bitexact -flags:v +bitexact \
    -video_track_timescale 720720 -movie_timescale 720720 -use_editlist 0 -movflags +faststart "$size.mp4"
done
