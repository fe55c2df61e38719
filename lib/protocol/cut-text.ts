/**
 * At most `length` UTF-16 code units of a text, its beginning, and never half of a surrogate pair: where the cut would
 * fall inside of one, it is left out whole.
 */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, length > 0 && last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
