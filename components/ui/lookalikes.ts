/**
 * A run of characters that can be mistaken for others: words of mixed scripts (`pаypal` with a Cyrillic а), words of
 * another script that read as Latin (`ехес.com`), styled ASCII letters (`𝐬𝐮𝐝𝐨`), and punctuation that looks like a
 * command's (`rm −rf`).
 *
 * Each word is checked against the whole text, its segment (a line, a quoted text, a command or a comment) and its
 * token, so that another language elsewhere in the text hides nothing.
 *
 * A word may have one script, a combination that UTS 39 calls Highly Restrictive, or a common mix (`kΩ`, `الـAPI`).
 * Marks have no script. Digits have a script only beside ASCII.
 *
 * @see https://www.unicode.org/reports/tr39/
 */
export interface Lookalike {
  /** End of the run, as an index into the text. */
  end: number;
  /** Name of the script, `styled`, or the code point of a single character, such as `U+2212`. */
  label: string;
}

/** Scripts with a label of their own. All other scripts share one label. */
const SCRIPTS = 'Latin Cyrillic Greek Han Hiragana Katakana Hangul Bopomofo Arabic Hebrew Armenian Cherokee Lisu'.split(
  ' ',
);
const OF_SCRIPT = SCRIPTS.map((name) => [name, new RegExp(`\\p{scx=${name}}`, 'u')] as const);
const OTHER = 'other script';
const STYLE = 'styled';
const LABELS = new Set([...SCRIPTS, OTHER, STYLE]);
const LABELLED = /⟨([^⟨⟩]{1,24})⟩/g;
/** Characters without a script of their own. */
const NEUTRAL = /[\p{scx=Common}\p{scx=Inherited}\p{M}\p{N}]/u;
/** Scripts that words combine: Chinese, Japanese or Korean with Latin. */
const TOGETHER = /^(?:(?:Latin|Han|Hiragana|Katakana|Bopomofo)*|(?:Latin|Han|Hangul)*)$/;
/** Greek letters unlike any Latin one beside Latin letters, and Arabic or Hebrew words joined with a Latin one. */
const WRITTEN_TOGETHER =
  /^(?:[a-zA-Z\p{N}]*[ΓΔΘΛΞΠΣΦΨΩ\u2126δζθλμξπφψ]{1,2}[a-zA-Z\p{N}]*|[\p{scx=Arabic}\p{scx=Hebrew}]{2,}[a-zA-Z\d]+|[a-zA-Z\d]+[\p{scx=Arabic}\p{scx=Hebrew}]{2,})$/u;
/** Variables and prefixes, as in `α-helix`. */
const GREEK_SYMBOL = /^[αγσ]$/;
const EAST_ASIAN = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;

/**
 * Letters that look Latin or like punctuation in most fonts (Unicode's confusables.txt): Cyrillic, Greek, Armenian and
 * Coptic letters, and strokes of Han, Kana, Hangul and Canadian syllabics.
 */
const LIKE_LATIN =
  'АВЕКМНОРСТУХаеорсухІіЈјЅѕԌԚԛԜԝԁһҺҽҮүѴѵѡӀӏӔӕΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿϜαινορυγσϲϳքգզհոռցօՕսՍաՏⲥⲟⲣ丨一丿丶ーノㅣㅡㅇᐸᐳ';
/** Letters of rare alphabets: a word whose letters all look Latin is hardly one of theirs. */
const RARE = /[ѕһӏԁԛԝ]/;
const UNLIKE_LATIN = new RegExp(`(?![\\0-\\x7f${LIKE_LATIN}])\\p{L}`, 'u');
/** Scripts whose letters nearly all look like Latin ones. */
const ALL_LIKE_LATIN = /Cherokee|Lisu/;
/** Latin letters outside living alphabets: small capitals, phonetic letters and enclosed letters. */
const ODD_LATIN = /[ɑɡɢɩɪɴʀʏʙʜʟᴀᴃ-ᴇᴊ-ᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞯⒶ-ⓩ\u{1f110}-\u{1f169}]/u;
/** Turkish letters that look like i and j. Allowed in a segment with other Turkish letters. */
const DOTLESS = /[ıȷ]/;
const TURKISH = /[çğöşüİ]/i;
/** Letters, roman numerals and digits that may have a plain form. */
const STYLED = /[\p{LC}\p{Nl}\p{Nd}]/u;
const FOREIGN_DIGIT = /(?!\d)\p{Nd}/u;
const WORD = /[\p{L}\p{M}\p{N}Ⓐ-ⓩ\u{1f110}-\u{1f169}]+/gu;
/** A line, a quoted text, a command or a comment. */
const SEGMENT = /[^\n;|&#"'`]+/g;
/** A run of non-blank characters. Each part of a path is a token. */
const TOKEN = /\/*[^\s/]+/g;
/** Contains ASCII letters, or is part of a path or an option. */
const ASCII_TOKEN = /[a-zA-Z]|^(?:\/|--)\p{L}/u;
const CAPITALS = /^[\p{Lu}\p{M}\p{N}]+$/u;
/** Capitals in a constant: `AWS_РАТН`, `$НОМЕ`, `РАТН=`. Other capitals are headings and abbreviations. */
const CONSTANT = /(?:[A-Z]_|[${])[^\0-\x7f]|[^\0-\x7f](?:_[A-Z]|=)/;
/**
 * Punctuation that looks like a command's (Unicode's confusables.txt), except in prose and mathematics. The first group,
 * the dashes of an option and the colon of a URL, is marked in any language.
 */
const PUNCTUATION =
  /((?<![^\s"'(=[,])[‐-–−⁃﹣－˗]+(?=[a-z])|：(?=[/／]{2}))|(?<=[a-z./~])[⁄∕-∗⧵-⧹╱╲⟋⟍‐‑⁃˗꞉∶˸ˋ℮⍳-⍺〇ǃ∼]|[⁄∕-∗⧵-⧹╱╲⟋⟍‐‑⁃˗꞉∶˸ˋ℮⍳-⍺〇ǃ∼](?=[a-z./~])|(?<=[a-z])[。｡−](?=[a-z])|(?<!\p{sc=Greek})\u037e|[‵․∗⁎∣ǀ﹍-﹫]|[！-／：-＠［-｀｛-～]/giu;
const ASCII_LETTER = /[a-z]/i;
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * Finds lookalikes in order, in linear time. Skips runs that are already followed by their label in ⟨⟩, and ignores such
 * labels, so labelling a text is idempotent.
 *
 * @param characterOf returns the character that a label stands for; null for other text
 * @param isTool expects ASCII, as in the name of a tool: every word that reads as Latin is marked
 */
export function lookalikes(text: string, characterOf?: (label: string) => string | null, isTool = false): Lookalike[] {
  if (!NOT_ASCII.test(text)) return [];
  const labels: { index: number; shorter: number }[] = [];
  const before = text.replace(LABELLED, (whole, label: string, index: number) => {
    const character = LABELS.has(label) ? '' : characterOf?.(label);
    if (character == null) return whole;
    // A label of punctuation follows its character, so only the label is removed.
    const instead = text.startsWith(character, index - character.length) ? '' : character;
    labels.push({ index, shorter: whole.length - instead.length });
    return instead;
  });
  const found: Lookalike[] = [];
  let [at, removed] = [0, 0];
  for (const [end, label] of [...unlabelled(before, isTool)].sort((a, b) => a[0] - b[0])) {
    for (let next = labels[at]; next !== undefined && next.index - removed < end; next = labels[++at])
      removed += next.shorter;
    if (!text.startsWith(`⟨${label}⟩`, end + removed)) found.push({ end: end + removed, label });
  }
  return found;
}

/** Labels by the end of their run, unordered. */
function unlabelled(text: string, isTool: boolean): Map<number, string> {
  const isLatinText = passesForAscii(text);
  const found = new Map<number, string>();
  for (const { index: start, 0: segment } of text.matchAll(SEGMENT)) {
    if (!NOT_ASCII.test(segment)) continue;
    const isTurkish = TURKISH.test(segment);
    const isLatinSegment = passesForAscii(segment);
    const isEastAsian = EAST_ASIAN.test(segment);
    const isCommand = isLatinSegment && /^\s*\w/.test(segment);
    for (const { index: from, 0: token } of segment.matchAll(TOKEN)) {
      const isLatinToken = isLatinSegment || passesForAscii(token);
      const isConstant = isLatinToken && CONSTANT.test(token);
      for (const { index, 0: word } of token.matchAll(WORD)) {
        if (!NOT_ASCII.test(word)) continue;
        let end = start + from + index;
        // Many languages have words of one or two letters, and endings such as in `PR-у`.
        const isAscii =
          isTool ||
          RARE.test(word) ||
          (CAPITALS.test(word) ? isConstant : isLatinText || (isLatinToken && (isCommand || word.length > 2)));
        let before: string | null = null;
        for (const [letter, label] of labelsOf(word, isAscii, isTurkish)) {
          if (label !== null && label === before) found.delete(end);
          end += letter.length;
          if (label !== null) found.set(end, label);
          before = label;
        }
      }
    }
    // East Asian text uses full-width punctuation.
    for (const { index, 0: run, 1: always } of segment.matchAll(PUNCTUATION))
      if (always || !isEastAsian || run < '！') found.set(start + index + run.length, codeName(run.charCodeAt(0)));
  }
  return found;
}

/** `U+2212`. */
export function codeName(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** True if a text, a segment or a token has ASCII letters and reads as Latin. */
function passesForAscii(text: string): boolean {
  return ASCII_TOKEN.test(text) && readsAsLatin(text);
}

/** A letter with its label if it is a lookalike, else null. */
type Labelled = readonly [letter: string, label: string | null];

/**
 * @param isAscii the context is ASCII: a word of another script that reads as Latin is a lookalike
 * @param isTurkish the segment contains Turkish letters
 */
function labelsOf(word: string, isAscii: boolean, isTurkish: boolean): Labelled[] {
  const letters = [...word].map((letter) => [letter, scriptOf(letter)] as const);
  const scripts = letters.flatMap(([, script]) => script ?? []);
  const kinds = [...new Set(scripts)];
  const readsLatin = readsAsLatin(word);
  const isLikeLatin = ALL_LIKE_LATIN.test(kinds.join());
  const isOdd =
    kinds.length > 1
      ? ((readsLatin && kinds.includes('Latin')) || !TOGETHER.test(kinds.join(''))) && !WRITTEN_TOGETHER.test(word)
      : isAscii && readsLatin && kinds.length > 0 && kinds[0] !== 'Latin' && !GREEK_SYMBOL.test(word);
  const count = (script: string) => scripts.filter((one) => one === script).length;
  // Marks the letters that make the word read as Latin, or else the letters of the rarer scripts.
  const main = isLikeLatin || readsLatin ? 'Latin' : kinds.sort((a, b) => count(b) - count(a))[0];
  const isEastAsian = EAST_ASIAN.test(word);
  const hasAscii = /\w/.test(word);
  return letters.map(([letter, script]) => {
    if (isOdd || isLikeLatin) return [letter, script === main ? null : script];
    // East Asian words use full-width letters and roman numerals.
    const isPlain = isEastAsian && /[Ⅰ-ⅿ！-～]/.test(letter);
    if ((!isPlain && isStyled(letter)) || (!isTurkish && DOTLESS.test(letter))) return [letter, STYLE];
    return [letter, hasAscii && FOREIGN_DIGIT.test(letter) ? nameOf(letter) : null];
  });
}

/** Returns the script of a letter; null for neutral characters. */
function scriptOf(letter: string): string | null {
  if (ASCII_LETTER.test(letter)) return 'Latin';
  return NEUTRAL.test(letter) ? null : nameOf(letter);
}

function nameOf(letter: string): string {
  return OF_SCRIPT.find(([, of]) => of.test(letter))?.[0] ?? OTHER;
}

/** True if every letter is ASCII or looks Latin. Text in another language also has other letters. */
function readsAsLatin(text: string): boolean {
  return !UNLIKE_LATIN.test(text.normalize('NFD'));
}

function isStyled(letter: string): boolean {
  if (!NOT_ASCII.test(letter)) return false;
  return ODD_LATIN.test(letter) || (STYLED.test(letter) && !NOT_ASCII.test(letter.normalize('NFKC')));
}
