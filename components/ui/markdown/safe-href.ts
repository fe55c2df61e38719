const ALLOWED = new Set(['http:', 'https:', 'mailto:']);

/**
 * A link an agent wrote, if following it can do no more than open a page or a mail. Relative links are refused too:
 * in an agent's text they mean a file of its project, never a page of ours.
 */
export function safeHref(href: string): string | null {
  // Browsers drop control characters and white space while they parse a scheme ("java\nscript:"), so they go first.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is the point
  const cleaned = href.replace(/[\u0000-\u0020\u007f-\u009f]/g, '');
  if (!/^(?:https?:\/\/|mailto:)/i.test(cleaned)) return null;
  try {
    const url = new URL(cleaned);
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
