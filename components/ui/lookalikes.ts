/**
 * Letters that pass for others: words of several scripts (`pаypal` with a Cyrillic а), words that are all of one script
 * and read as Latin (`ехес`), and letters that are only a style of an ASCII letter (`𝐬𝐮𝐝𝐨`).
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

/**
 * Letters that look like a Latin one in most fonts, from the facts of Unicode's confusables.txt: those of scripts in which
 * whole words can be written with them. Weak likenesses (г, Ь, З) are left out: they are in every second Russian word.
 */
const LIKE_LATIN = new Set(
  [
    'АВЕКМНОРСТУХаеорсухІіЈјЅѕԌԚԛԜԝԁһҺҽҮүѴѵѡӀӏӔӕӠ',
    'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϺͿϜαινορυγσϲϳ',
    'քգզհոռցօՕսՍաՏ',
    'ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᏒᎡᏚᎢᏙᎳᎩᎽᏃᏂᏏᏔᏧᎥꮯꮪꮩꮃꮓꭵꮁ',
    'ꓮꓐꓚꓓꓰꓝꓖꓧꓙꓗꓲꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ',
    'ⲥⲤⲎⲔⲒⲘⲚⲟⲞⲣⲢⲦⲬⲨⲅⳐ',
    '𐐬𐐄𐐽𐐕𐑈𐐠𐐛',
  ].flatMap((letters) => [...letters]),
);
/** Latin letters that are no letter of a living alphabet: small capitals, and those of phonetic alphabets. */
const ODD_LATIN = /[ɑɡɢɩɪɴʀʏʙʜʟᴀᴃ-ᴇᴊ-ᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱꞯ]/u;
/** Letters, roman numerals and the digits of mathematics, which have a plain form. Other digits are those of a language. */
const STYLED = /[\p{Lu}\p{Ll}\p{Lt}\p{Nl}\u{1d7ce}-\u{1d7ff}]/u;
/**
 * Words of people who write so, made of nothing but such letters. What they look like in Latin means nothing, so they
 * pass for nothing.
 */
const HONEST = new Set(
  (
    'ее её неё нее со хор хаос сахар роса раса оса коса уха ухо орех сор ура сера аура нет тест кот рот нос мост вес сон ' +
    'не на но все кто там нам вас вам сам рост сосна вера мера тема море место текст тон том весна ' +
    'ναι να για αν ου και νυν ιος ροη'
  ).split(' '),
);

/** Prepositions and the like: the word behind one says whether it is of its language. */
const SHORT = 3;

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
  const found: Lookalike[] = [];
  const scriptOf = scriptFinder();
  /** Words that read as Latin, until the word behind them says whether they are words of its script. */
  let undecided: Lookalike[] = [];
  /** The script of the word before, if only blanks separate it from this one. */
  let before = '';
  let last = 0;
  const decide = (script: string) => {
    if (undecided[0]?.label !== script) found.push(...undecided);
    undecided = [];
  };
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (last === 0 || !/^[ \t]+$/.test(text.slice(last, index))) {
      decide('');
      before = '';
    }
    last = index + word.length;
    const letters = NOT_ASCII.test(word) ? lettersOf(word, index, scriptOf) : [];
    const scripts = new Set(letters.map(({ script }) => script));
    const [script = 'Latin'] = scripts;
    if (scripts.size === 1 && script !== 'Latin' && readsAsLatin(word)) {
      if (before === script) continue;
      if (undecided[0]?.label !== script) decide('');
      if (letters.length <= SHORT) undecided.push({ end: last, label: script });
      else found.push({ end: last, label: script });
      continue;
    }
    before = scripts.size > 1 ? '' : script;
    decide(before);
    if (scripts.size > 1 && !TOGETHER.some((some) => [...scripts].every((one) => some.includes(one))))
      found.push(...runsOf(letters, foreignIn(letters)));
    else found.push(...styledIn(word, index));
  }
  decide('');
  return found.sort((a, b) => a.end - b.end);
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

function readsAsLatin(word: string): boolean {
  if (HONEST.has(word.toLowerCase())) return false;
  const letters = [...word.normalize('NFD')].filter((letter) => !NEUTRAL.test(letter));
  return letters.every((letter) => LIKE_LATIN.has(letter));
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
