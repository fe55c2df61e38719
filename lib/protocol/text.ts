/** The first `length` UTF-16 code units of a text, without half a surrogate pair at the end. */
export function truncateText(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, length > 0 && last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** Double quotes, their lookalikes (UTS 39), and adjacent single quotes with nothing visible between them. */
const DOUBLE_QUOTES =
  /[“-‟″‶〃〝-〟＂❝❞⹂ʺ˝ˮ˶״ײ\u1cd3\u{1f676}-\u{1f678}]|(?=.?[‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ](?:\p{DI}*['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])+/gu;

/** Foreign text with plain double quotes, so that it can't close the typographic quotes around it. */
export function withoutQuotes(text: string): string {
  return text.replace(DOUBLE_QUOTES, '"');
}
