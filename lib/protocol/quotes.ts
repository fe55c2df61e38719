/** Double quotes of all kinds, what looks like one (UTS 39), and single ones that stand together. */
const DOUBLE_QUOTES = /[“-‟″‶〃〝-〟＂❝❞⹂ʺ˝ˮ˶״\u{1f676}-\u{1f678}]|[‘-‛′‵❛❜＇ʹʼ]{2,}/gu;

/** For text of others that is put in typographic quotes. No quote inside it then ends them. */
export function withoutQuotes(text: string): string {
  return text.replace(DOUBLE_QUOTES, '"');
}
