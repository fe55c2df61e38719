/**
 * Letters that pass for others: words of several scripts (`pаypal` with a Cyrillic а), words that read as Latin among
 * ASCII ones (`ехес.com`), and letters that are only a style of an ASCII letter (`𝐬𝐮𝐝𝐨`).
 *
 * A word may have one script, or one of the combinations that UTS 39 calls Highly Restrictive. Digits and marks have none.
 *
 * @see https://www.unicode.org/reports/tr39/
 */
export interface Lookalike {
  /** Where the run of letters ends, as an index into the text. */
  end: number;
  /** What they are: the name of their script, or `styled`. */
  label: string;
}

const SCRIPTS = [
  ...['Latin', 'Cyrillic', 'Greek', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Bopomofo', 'Arabic', 'Hebrew'],
  ...['Devanagari', 'Thai', 'Armenian', 'Georgian', 'Bengali', 'Tamil', 'Telugu', 'Kannada', 'Malayalam', 'Gujarati'],
  ...['Gurmukhi', 'Oriya', 'Sinhala', 'Lao', 'Khmer', 'Myanmar', 'Tibetan', 'Ethiopic', 'Mongolian', 'Syriac'],
  ...['Thaana', 'Nko', 'Cherokee', 'Canadian_Aboriginal', 'Tifinagh', 'Coptic', 'Lisu', 'Deseret', 'Osage', 'Vai'],
  ...['Old_Italic', 'Runic', 'Glagolitic', 'Gothic', 'Carian', 'Lycian', 'Warang_Citi'],
];
const OF_SCRIPT = SCRIPTS.map((name) => [name, new RegExp(`\\p{scx=${name}}`, 'u')] as const);
const OTHER = 'other script';
const STYLE = 'styled';
const LABELLED = new RegExp(`⟨(?:${[...SCRIPTS, OTHER, STYLE].join('|')})⟩`, 'g');
/** Has no script of its own, or that of the letters around it. */
const NEUTRAL = /[\p{scx=Common}\p{scx=Inherited}\p{M}\p{N}]/u;
/** Scripts that are written in one word: Chinese, Japanese and Korean, each with Latin. */
const TOGETHER = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];
const EAST_ASIAN = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}]/u;

/** Cyrillic, Greek, Armenian and Coptic letters that look like a Latin one in most fonts (Unicode's confusables.txt). */
const LIKE_LATIN = new Set('АВЕКМНОРСТУХаеорсухІіЈјЅѕԌԚԛԜԝԁһҺҽҮүѴѵѡӀӏӔӕΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿϜαινορυγσϲϳքգզհոռցօՕսՍաՏⲥⲟⲣ');
/** Latin letters that are no letter of a living alphabet: small capitals, and those of phonetic alphabets. */
const ODD_LATIN = /[ɑɡɢɩɪɴʀʏʙʜʟᴀᴃ-ᴇᴊ-ᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞯ]/u;
/** Letters, roman numerals and the digits of mathematics, which have a plain form. Other digits are those of a language. */
const STYLED = /[\p{Lu}\p{Ll}\p{Lt}\p{Nl}\u{1d7ce}-\u{1d7ff}]/u;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const NOT_ASCII = /[^\0-\x7f]/;

interface Letter {
  script: string;
  /** As written. */
  letter: string;
  end: number;
}

/**
 * The runs of letters in a text that pass for others, in their order. Skips a run that its label follows already, in ⟨⟩.
 * Takes linear time.
 */
export function lookalikes(text: string): Lookalike[] {
  if (!NOT_ASCII.test(text)) return [];
  const labelled = [...text.matchAll(LABELLED)].map(({ 0: label, index }) => ({ label, index }));
  if (labelled.length === 0) return unlabelled(text);
  const found: Lookalike[] = [];
  let [at, removed] = [0, 0];
  for (const { end, label } of unlabelled(text.replace(LABELLED, ''))) {
    for (let next = labelled[at]; next !== undefined && next.index - removed < end; next = labelled[++at])
      removed += next.label.length;
    if (!text.startsWith(`⟨${label}⟩`, end + removed)) found.push({ end: end + removed, label });
  }
  return found;
}

function unlabelled(text: string): Lookalike[] {
  const scriptOf = scriptFinder();
  const passesForAscii = /[a-z]/i.test(text) && readsAsLatin(text);
  return [...text.matchAll(WORD)].flatMap(({ 0: word, index }) => {
    if (!NOT_ASCII.test(word)) return [];
    const letters = lettersOf(word, index, scriptOf);
    const scripts = [...new Set(letters.map(({ script }) => script))];
    if (scripts.length > 1 && !TOGETHER.some((some) => scripts.every((one) => some.includes(one))))
      return runsOf(letters, foreignIn(letters));
    const [script = 'Latin'] = scripts;
    // A word in capitals is a heading, a constant or an abbreviation of its language.
    if (script !== 'Latin' && passesForAscii && word !== word.toUpperCase())
      return [{ end: index + word.length, label: script }];
    return styledIn(word, index);
  });
}

/** The letters of a word that have a script. */
function lettersOf(word: string, index: number, scriptOf: (letter: string) => string): Letter[] {
  const letters: Letter[] = [];
  let end = index;
  for (const letter of word) {
    end += letter.length;
    if (!NEUTRAL.test(letter)) letters.push({ script: scriptOf(letter), letter, end });
  }
  return letters;
}

/** Tells the script of each letter of a text. That of the letter before is tried first: there are few changes. */
function scriptFinder(): (letter: string) => string {
  let last = OF_SCRIPT[0];
  return (letter) => {
    if (/[a-z]/i.test(letter)) return 'Latin';
    if (last?.[1].test(letter)) return last[0];
    last = OF_SCRIPT.find(([, of]) => of.test(letter));
    return last?.[0] ?? OTHER;
  };
}

/** Which letters of a mixed word are marked: those that make it read as Latin, else those of the rarer scripts. */
function foreignIn(letters: readonly Letter[]): (letter: Letter) => boolean {
  const others = letters.filter(({ script }) => script !== 'Latin');
  if (others.every(({ letter }) => LIKE_LATIN.has(letter))) return ({ script }) => script !== 'Latin';
  const counts = new Map<string, number>();
  for (const { script } of letters) counts.set(script, (counts.get(script) ?? 0) + 1);
  const [main] = [...counts].reduce((most, one) => (one[1] > most[1] ? one : most));
  return ({ script }) => script !== main;
}

/** Letters of one script that follow each other have one label. */
function runsOf(letters: readonly Letter[], isForeign: (letter: Letter) => boolean): Lookalike[] {
  return letters.flatMap((letter, at) => {
    const next = letters[at + 1];
    const goesOn = next !== undefined && next.script === letter.script && next.end - next.letter.length === letter.end;
    return isForeign(letter) && !goesOn ? [{ end: letter.end, label: letter.script }] : [];
  });
}

/** Returns true if every letter is ASCII or looks like a Latin one: text in another language has others, too. */
function readsAsLatin(text: string): boolean {
  const letters = text.normalize('NFD').match(/\p{L}/gu) ?? [];
  return letters.every((letter) => !NOT_ASCII.test(letter) || LIKE_LATIN.has(letter));
}

/** Runs of letters that are a style of ASCII letters. */
function styledIn(word: string, index: number): Lookalike[] {
  if (!NOT_ASCII.test(word) || EAST_ASIAN.test(word)) return [];
  if (word === word.normalize('NFKC') && !ODD_LATIN.test(word)) return [];
  const found: Lookalike[] = [];
  let end = index;
  let goesOn = false;
  for (const letter of word) {
    end += letter.length;
    const isStyled = NOT_ASCII.test(letter) && (ODD_LATIN.test(letter) || isStyleOfAscii(letter));
    const run = goesOn ? found.at(-1) : undefined;
    if (isStyled && run !== undefined) run.end = end;
    else if (isStyled) found.push({ end, label: STYLE });
    goesOn = isStyled;
  }
  return found;
}

function isStyleOfAscii(letter: string): boolean {
  return STYLED.test(letter) && !NOT_ASCII.test(letter.normalize('NFKC'));
}
