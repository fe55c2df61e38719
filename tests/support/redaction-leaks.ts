import { RedactedText, wholeText } from '@interlude/protocol/redaction/redacted-text';
import type { Form } from './redaction-corpus';

/** Consecutive characters of a secret that count as a leak. */
const LEAK = 6;

function hasLeak(shown: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => {
    const length = Math.min(LEAK, secret.length);
    return Array.from({ length: secret.length - length + 1 }, (_, at) => secret.slice(at, at + length)).some((part) =>
      shown.includes(part),
    );
  });
}

/** The text shown after each piece. */
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

/** False if later text identifies the secret, such as the command it is piped into: pieces show it before. */
export function isKnownInTime({ template }: Form): boolean {
  return !/^(?:echo|printf) .*[|>]|^Use |^Type |-us12$/.test(template);
}

/** Forms with a leak in any shown text. */
export function leaking(forms: readonly Form[], shows: (text: string) => Iterable<string>, isInJson = false): string[] {
  return forms
    .filter(({ text, secrets }) => {
      const hidden = isInJson ? secrets.map((secret) => JSON.stringify(secret).slice(1, -1)) : secrets;
      for (const shown of shows(text)) if (hasLeak(shown, hidden)) return true;
      return false;
    })
    .map(({ template }) => template);
}

/** Splits that leak a secret or change the result. */
export function leakingCuts(forms: readonly Form[]): string[] {
  return forms.flatMap(({ text, secrets }) => {
    const whole = wholeText(text).shown().text;
    return Array.from({ length: text.length - 1 }, (_, at) => text.slice(0, at + 1)).filter((beginning) => {
      const [first = '', last = ''] = shownAfterEach([beginning, text.slice(beginning.length)]);
      return hasLeak(first, secrets) || last !== whole;
    });
  });
}
