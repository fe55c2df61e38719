/** Minimum bits against offline guessing. */
const MIN_BITS = 64;

/** Bits of a character that repeats the previous ones or continues their sequence. */
const EXPECTED_BITS = 1;
/** Bits of any other character in a secret that consists of words. */
const WORD_BITS = 2;

const HEX = /^[0-9a-f]+$/i;
/** Pronounceable letters of one case, as in most words. */
const WORD = /[A-Z]?[a-z]{3,}|[A-Z]{4,}/g;
/** Few words have j, q, v, x or z beside other consonants; random text often does. */
const PRONOUNCEABLE =
  /^(?!.*(?:q[^u]|[jvxz][^aeioucptyz]|[^aeiouyln][jqxz]))(?:[^aeiouy]{0,3}[aeiouy]{1,3})+[^aeiouy]{0,3}$/i;
/** A secret consists of words if they make up LETTERS_IN_WORDS of its letters and ALL_IN_WORDS of its characters. */
const LETTERS_IN_WORDS = 2 / 3;
const ALL_IN_WORDS = 0.6;
/**
 * Share for text with digits read as letters. Random text then resembles words more often, so words must make up the
 * whole text.
 */
const ALL_IN_LEET = 1;
/** Words that are common in secrets, and the share of a secret in them that makes it guessable. */
const COMMON =
  /access|admin(?:istrator)?|agent|board|change|dash|inter|key|login|lude|master|pass|phrase|private|project|root|secret|secure|server|super|team|test|token|user|welcome|word/gi;
const ALL_IN_COMMON = 0.5;
/** Minimum average length of words. Apparent words in random text are shorter. */
const MEAN_WORD_LENGTH = 5;
/** Keyboard neighbours, also across two rows, form a sequence like letters of the alphabet. */
const KEYS = ['1234567890', 'qwertyuiop', 'asdfghjkl;', 'zxcvbnm,./', '!@#$%^&*()'].flatMap((row, index) =>
  [...row].map((key, column) => ({ key, row: index % 4, column })),
);
/** Characters that stand for letters. */
const LEET = new Map(Object.entries({ 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', '@': 'a', $: 's' }));

/**
 * Estimates whether a secret can be guessed, from rules and a short word list. Repetitions, sequences and words add few
 * bits; every other character adds as many as its alphabet allows.
 *
 * @param {string} secret
 */
export function isGuessable(secret) {
  return estimatedBits(secret) < MIN_BITS;
}

/** @param {string} secret */
function estimatedBits(secret) {
  const bitsEach = hasWords(secret) ? WORD_BITS : Math.log2(alphabetOf(secret));
  /** @type {Set<string>} */
  const seen = new Set();
  let bits = 0;
  for (let index = 0; index < secret.length; index += 1) {
    const pair = secret.slice(Math.max(index - 1, 0), index + 1).toLowerCase();
    const step = index === 0 ? Number.NaN : secret.charCodeAt(index) - secret.charCodeAt(index - 1);
    const run = secret.slice(Math.max(index - 2, 0), index + 1).toLowerCase();
    const isExpected = Math.abs(step) <= 1 || seen.has(pair) || isKeyboardRun(run);
    seen.add(pair);
    bits += isExpected ? EXPECTED_BITS : bitsEach;
  }
  return bits;
}

/** @param {string} secret */
function hasWords(secret) {
  if (HEX.test(secret)) return false;
  const plain = secret.replace(/[013457@$]/g, (character) => LEET.get(character) ?? character);
  const common = (plain.match(COMMON) ?? []).join('').length;
  const isCommon = common >= secret.length * ALL_IN_COMMON;
  return isCommon || consistsOfWords(secret, ALL_IN_WORDS) || consistsOfWords(plain, ALL_IN_LEET);
}

/** @param {string} secret @param {number} minShare minimum share of the secret in words */
function consistsOfWords(secret, minShare) {
  const letters = secret.replace(/[^a-z]/gi, '').length;
  const words = (secret.match(WORD) ?? []).filter((word) => PRONOUNCEABLE.test(word));
  const inWords = words.join('').length;
  const areWords = inWords > 0 && inWords >= words.length * MEAN_WORD_LENGTH;
  return areWords && inWords >= letters * LETTERS_IN_WORDS && inWords >= secret.length * minShare;
}

/** True if three keys are neighbours. Pairs are too common in random text. @param {string} text in lower case */
function isKeyboardRun(text) {
  const keys = [...text].flatMap((character) => KEYS.filter(({ key }) => key === character));
  const areNeighbours = keys.map(({ row, column }, index) => {
    const last = keys[index - 1];
    return last === undefined || (Math.abs(row - last.row) <= 1 && Math.abs(column - last.column) <= 1);
  });
  return keys.length === 3 && areNeighbours.every(Boolean);
}

/** Size of the alphabet, from the kinds of characters that occur. @param {string} secret */
function alphabetOf(secret) {
  if (HEX.test(secret)) return 16;
  const kinds = /** @type {const} */ ([
    [/[a-z]/, 26],
    [/[A-Z]/, 26],
    [/[0-9]/, 10],
    [/[^a-zA-Z0-9]/, 33],
  ]);
  return kinds.reduce((size, [kind, count]) => size + (kind.test(secret) ? count : 0), 0);
}
