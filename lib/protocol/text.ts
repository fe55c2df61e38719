/** The first `length` UTF-16 code units of a text, without half a surrogate pair at the end. */
export function truncateText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, length > 0 && last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}
