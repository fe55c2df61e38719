import { RedactedText, wholeText } from '@interlude/protocol/redaction/redacted-text';
import type { Form } from './redaction-corpus';

/** So many characters in a row of a secret are a leak. */
const LEAK = 6;

function hasLeak(shown: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => {
    const length = Math.min(LEAK, secret.length);
    return Array.from({ length: secret.length - length + 1 }, (_, at) => secret.slice(at, at + length)).some((part) =>
      shown.includes(part),
    );
  });
}

/** Each state that a reader sees who gets the text in pieces. */
function* shownAfterEach(pieces: Iterable<string>): Generator<string> {
  const text = new RedactedText();
  let shown = '';
  for (const piece of pieces) {
    const more = text.more(piece);
    shown = more === null ? text.shown().text : shown + more;
    yield shown;
  }
}

export function shownByCharacter(text: string): Generator<string> {
  return shownAfterEach(`${text}\n`);
}

export const toolInput = (text: string) => JSON.stringify({ command: text, timeout: 1 });

/** False where only what follows a secret tells it, such as the program that it is piped into: pieces show it before that. */
export function isKnownInTime({ template }: Form): boolean {
  return !/^(?:echo|printf) .*[|>]|^Use |^Type |-us12$/.test(template);
}

/** The forms of which a shown state leaks a secret. */
export function leaking(forms: readonly Form[], shows: (text: string) => Iterable<string>, isInJson = false): string[] {
  return forms
    .filter(({ text, secrets }) => {
      const hidden = isInJson ? secrets.map((secret) => JSON.stringify(secret).slice(1, -1)) : secrets;
      for (const shown of shows(text)) if (hasLeak(shown, hidden)) return true;
      return false;
    })
    .map(({ template }) => template);
}

/** The beginnings after which a cut leaks a secret, or makes the whole text read differently. */
export function leakingCuts(forms: readonly Form[]): string[] {
  return forms.flatMap(({ text, secrets }) => {
    const whole = wholeText(text).shown().text;
    return Array.from({ length: text.length - 1 }, (_, at) => text.slice(0, at + 1)).filter((beginning) => {
      const [first = '', last = ''] = shownAfterEach([beginning, text.slice(beginning.length)]);
      return hasLeak(first, secrets) || last !== whole;
    });
  });
}
