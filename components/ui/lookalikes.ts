/**
 * Characters that pass for others: words of several scripts (`pаypal` with a Cyrillic а), words that read as Latin among
 * ASCII ones (`ехес.com`), styles of ASCII letters (`𝐬𝐮𝐝𝐨`), and punctuation that reads as that of a command (`rm −rf`).
 *
 * A word may have one script, one of the combinations that UTS 39 calls Highly Restrictive, or one that people write
 * (`kΩ`, `الـAPI`). Marks have no script, and digits only beside ASCII.
 *
 * @see https://www.unicode.org/reports/tr39/
 */
export interface Lookalike {
  /** Where the run of characters ends, as an index into the text. */
  end: number;
  /** The name of their script, `styled`, or the code point of the one character, as in `U+2212`. */
  label: string;
}

/** Scripts with a label of their own. Letters of any other count as one script. */
const SCRIPTS =
  'Latin Cyrillic Greek Han Hiragana Katakana Hangul Bopomofo Arabic Hebrew Armenian Georgian Devanagari Thai Cherokee Coptic Lisu'.split(
    ' ',
  );
const OF_SCRIPT = SCRIPTS.map((name) => [name, new RegExp(`\\p{scx=${name}}`, 'u')] as const);
const OTHER = 'other script';
const STYLE = 'styled';
const LABELS = new Set([...SCRIPTS, OTHER, STYLE]);
const LABELLED = /⟨([^⟨⟩]{1,24})⟩/g;
/** Has no script of its own, or that of the letters around it. */
const NEUTRAL = /[\p{scx=Common}\p{scx=Inherited}\p{M}\p{N}]/u;
/** Scripts that are written in one word: Chinese, Japanese and Korean, each with Latin. */
const TOGETHER = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];
/** Greek signs that look like no Latin letter, beside some, and words of Arabic or Hebrew with a Latin one attached. */
const WRITTEN_TOGETHER =
  /^(?:[a-zA-Z\p{N}]*[ΓΔΘΛΞΠΣΦΨΩ\u2126δζθλμξπφψ]{1,2}[a-zA-Z\p{N}]*|[\p{scx=Arabic}\p{scx=Hebrew}]{2,}[a-zA-Z\d]+|[a-zA-Z\d]+[\p{scx=Arabic}\p{scx=Hebrew}]{2,})$/u;
/** Variables and prefixes, as in `α-helix`. */
const GREEK_SIGN = /^[αγσ]$/;
const EAST_ASIAN = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u;

/** Cyrillic, Greek, Armenian and Coptic letters that look like a Latin one in most fonts (Unicode's confusables.txt). */
const LIKE_LATIN = new Set('АВЕКМНОРСТУХаеорсухІіЈјЅѕԌԚԛԜԝԁһҺҽҮүѴѵѡӀӏӔӕΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿϜαινορυγσϲϳքգզհոռցօՕսՍաՏⲥⲟⲣ');
/** Scripts whose every letter looks like a Latin one, or nearly. */
const ALL_LIKE_LATIN = /Cherokee|Lisu/;
/** Latin letters that are no letter of a living alphabet: small capitals, phonetic alphabets, and those in a shape. */
const ODD_LATIN = /[ɑɡɢɩɪɴʀʏʙʜʟᴀᴃ-ᴇᴊ-ᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞯⒶ-ⓩ\u{1f110}-\u{1f169}]/u;
/** Letters of Turkish, which has others of its own. Without any they pass for i and j. */
const DOTLESS = /[ıȷ]/;
const OTHER_LATIN = /(?![\0-\x7fıȷ])\p{scx=Latin}/u;
/** Letters, roman numerals and digits, which have a plain form. */
const STYLED = /[\p{Lu}\p{Ll}\p{Lt}\p{Nl}\p{Nd}]/u;
const FOREIGN_DIGIT = /(?!\d)\p{Nd}/u;
const WORD = /[\p{L}\p{M}\p{N}Ⓐ-ⓩ\u{1f110}-\u{1f169}]+/gu;
/** Dashes of an option, slashes of a path, separators and quotes of a shell. Not as prose and mathematics have them. */
const PUNCTUATION =
  /(?<![^\s"'(=[,])[‐-–−⁃﹣]+(?=[a-z])|(?<=[a-z./~])[⁄∕⧸]|[⁄∕⧸](?=[a-z./~])|(?<!\p{sc=Greek})\u037e|[‵․﹐-﹫]|[！-／：-＠［-｀｛-～]/giu;
const NOT_ASCII = /[^\0-\x7f]/;

/**
 * The runs of letters in a text that pass for others, in their order. Skips a run that its label follows already, in ⟨⟩:
 * text that was labelled once is judged as it was before.
 * Takes linear time.
 *
 * @param characterOf the character that a label in ⟨⟩ spells out; null if it spells none
 */
export function lookalikes(text: string, characterOf: (label: string) => string | null = () => null): Lookalike[] {
  if (!NOT_ASCII.test(text)) return [];
  const labels: { index: number; shorter: number }[] = [];
  const before = text.replace(LABELLED, (whole, label: string, index: number) => {
    const character = LABELS.has(label) ? '' : characterOf(label);
    if (character === null) return whole;
    // the label of punctuation follows the character itself
    const instead = text.startsWith(character, index - character.length) ? '' : character;
    labels.push({ index, shorter: whole.length - instead.length });
    return instead;
  });
  const found: Lookalike[] = [];
  let [at, removed] = [0, 0];
  for (const { end, label } of unlabelled(before)) {
    for (let next = labels[at]; next !== undefined && next.index - removed < end; next = labels[++at])
      removed += next.shorter;
    if (!text.startsWith(`⟨${label}⟩`, end + removed)) found.push({ end: end + removed, label });
  }
  return found;
}

function unlabelled(text: string): Lookalike[] {
  const scriptOf = scriptFinder();
  const passesForAscii = /[a-z]/i.test(text) && readsAsLatin(text);
  const hasOtherLatin = OTHER_LATIN.test(text);
  const found: Lookalike[] = [];
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!NOT_ASCII.test(word)) continue;
    let end = index;
    let run = null as Lookalike | null;
    for (const [letter, label] of labelsOf(word, { scriptOf, passesForAscii, hasOtherLatin })) {
      end += letter.length;
      if (label === null) run = null;
      else if (run?.label === label) run.end = end;
      else {
        run = { end, label };
        found.push(run);
      }
    }
  }
  // full-width punctuation is that of East Asian text
  const isEastAsian = EAST_ASIAN.test(text);
  for (const { 0: run, index } of text.matchAll(PUNCTUATION)) {
    if (isEastAsian && run >= '！') continue;
    found.push({
      end: index + run.length,
      label: `U+${run.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
    });
  }
  return found.sort((a, b) => a.end - b.end);
}

/** Facts about a whole text that decide how its words are judged. */
interface Surroundings {
  scriptOf: (letter: string) => string | null;
  /** Every letter of the text reads as Latin, and some are ASCII. */
  passesForAscii: boolean;
  /** The text has Latin letters that are neither ASCII nor dotless: it is in another language than English. */
  hasOtherLatin: boolean;
}

/** A letter, and the label of what makes it pass for another; null if nothing does. */
type Labelled = readonly [letter: string, label: string | null];

function labelsOf(word: string, { scriptOf, passesForAscii, hasOtherLatin }: Surroundings): Labelled[] {
  const letters = [...word].map((letter) => [letter, scriptOf(letter)] as const);
  const scripts = letters.flatMap(([, script]) => script ?? []);
  const kinds = [...new Set(scripts)];
  const isMixed =
    kinds.length > 1 &&
    !TOGETHER.some((some) => kinds.every((one) => some.includes(one))) &&
    !WRITTEN_TOGETHER.test(word);
  const isLikeLatin = ALL_LIKE_LATIN.test(kinds.join());
  // A word in capitals is a heading, a constant or an abbreviation of its language.
  const isWhole = kinds.length === 1 && passesForAscii && word !== word.toUpperCase() && !GREEK_SIGN.test(word);
  if (!isMixed && !isLikeLatin && (!isWhole || kinds[0] === 'Latin')) return plainLabels(word, hasOtherLatin);
  const count = (script: string) => scripts.filter((one) => one === script).length;
  // Marked are the letters that make it read as Latin, else those of the rarer scripts.
  const main =
    isLikeLatin || readsAsLatin(word) ? 'Latin' : kinds.reduce((most, one) => (count(one) > count(most) ? one : most));
  return letters.map(([letter, script]) => [letter, script === main ? null : script]);
}

/** The labels of a word whose scripts pass for no other: only styled letters and foreign digits have one. */
function plainLabels(word: string, hasOtherLatin: boolean): Labelled[] {
  // full-width letters are plain among East Asian ones
  const isEastAsian = EAST_ASIAN.test(word);
  const hasAscii = /[a-z\d]/i.test(word);
  return [...word].map((letter) => {
    if (!isEastAsian && (isStyled(letter) || (!hasOtherLatin && DOTLESS.test(letter)))) return [letter, STYLE];
    return [letter, hasAscii && FOREIGN_DIGIT.test(letter) ? nameOf(letter) : null];
  });
}

/** Returns the script of each letter, null for what has none. Tries that of the letter before first: few change. */
function scriptFinder(): (letter: string) => string | null {
  let last = OF_SCRIPT[0];
  return (letter) => {
    if (/[a-z]/i.test(letter)) return 'Latin';
    if (NEUTRAL.test(letter)) return null;
    if (!last?.[1].test(letter)) last = OF_SCRIPT.find(([, of]) => of.test(letter));
    return last?.[0] ?? OTHER;
  };
}

function nameOf(letter: string): string {
  return OF_SCRIPT.find(([, of]) => of.test(letter))?.[0] ?? OTHER;
}

/** Returns true if every letter is ASCII or looks like a Latin one: text in another language has others, too. */
function readsAsLatin(text: string): boolean {
  const letters = text.normalize('NFD').match(/\p{L}/gu) ?? [];
  return letters.every((letter) => !NOT_ASCII.test(letter) || LIKE_LATIN.has(letter));
}

function isStyled(letter: string): boolean {
  if (!NOT_ASCII.test(letter)) return false;
  return ODD_LATIN.test(letter) || (STYLED.test(letter) && !NOT_ASCII.test(letter.normalize('NFKC')));
}
