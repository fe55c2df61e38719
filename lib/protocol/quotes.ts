/** Double quotes of all kinds, and what looks like one (UTS 39). */
const DOUBLE = '[“-‟″‶〃〝-〟＂❝❞⹂ʺ˝ˮ˶״ײ\\u1cd3\\u{1f676}-\\u{1f678}]';
const SINGLE = '‘-‛′‵❛❜＇｀ʹ-ˋ´՚׳᾽-᾿῾ꞌߴߵ';
/** Single quotes that stand together, with nothing visible between them. ASCII ones alone do not count. */
const PAIR = `(?=.?[${SINGLE}])['\`${SINGLE}](?:\\p{Default_Ignorable_Code_Point}*['\`${SINGLE}])+`;
const DOUBLE_QUOTES = new RegExp(`${DOUBLE}|${PAIR}`, 'gu');

/** For text of others that is put in typographic quotes. No quote inside it then ends them. */
export function withoutQuotes(text: string): string {
  return text.replace(DOUBLE_QUOTES, '"');
}
