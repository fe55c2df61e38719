/** Double quotes of all kinds, what looks like one (UTS 39), and single ones with nothing visible between them. */
const DOUBLE_QUOTES =
  /[“-‟″‶〃〝-〟＂❝❞⹂ʺ˝ˮ˶״ײ\u1cd3\u{1f676}-\u{1f678}]|(?=.?[‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ](?:\p{DI}*['`‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ])+/gu;

/** For text of others that is put in typographic quotes. No quote inside it then ends them. */
export function withoutQuotes(text: string): string {
  return text.replace(DOUBLE_QUOTES, '"');
}
