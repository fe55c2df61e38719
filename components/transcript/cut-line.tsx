/** How much of a text the server does not show, where it streamed without end. */
export function CutLine({ cut = 0 }: { cut?: number }) {
  if (cut === 0) return null;
  return (
    <p className="tabular my-1 text-ink-3 text-xs">
      … and {cut.toLocaleString('en')} more characters that are not shown.
    </p>
  );
}
