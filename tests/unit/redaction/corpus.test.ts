import { describe, expect, it } from 'vitest';
import { findSecrets } from '@/lib/redaction/find-secrets';
import { redactValue } from '@/lib/redaction/redact-value';
import { RedactedText, redactedText } from '@/lib/redaction/redacted-text';
import { harmlessTexts, secretForms } from '../../support/redaction-corpus';

const SEED = 20_261_128;
const FORMS = secretForms(SEED);
const HARMLESS = harmlessTexts(SEED);
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

/** Forms that leak: of one in a hundred at most is accepted in pieces, because what follows names the secret. */
function leaking(shows: (text: string) => Iterable<string>, inJson = false): string[] {
  return FORMS.filter(({ text, secrets }) => {
    const hidden = inJson ? secrets.map((secret) => JSON.stringify(secret).slice(1, -1)) : secrets;
    for (const shown of shows(text)) if (hasLeak(shown, hidden)) return true;
    return false;
  }).map(({ template }) => template);
}

const toolInput = (text: string) => JSON.stringify({ command: text, timeout: 1 });

describe('the corpus of secrets', () => {
  it('has two hundred forms of each sort', () => {
    expect([FORMS.length >= 200, HARMLESS.length >= 200]).toEqual([true, true]);
    expect(FORMS.filter(({ secrets }) => secrets.length === 0)).toEqual([]);
  });

  it('is hidden in a whole text', () => {
    expect(leaking((text) => [redactedText(text).text])).toEqual([]);
  });

  it('is hidden in a log line', () => {
    const cut = (text: string) => {
      let [shown, at] = ['', 0];
      for (const { start, end } of findSecrets(text)) [shown, at] = [`${shown}${text.slice(at, start)}`, end];
      return shown + text.slice(at);
    };
    expect(leaking((text) => [cut(text)])).toEqual([]);
  });

  it('is hidden in the input of a tool', () => {
    expect(leaking((command) => [JSON.stringify(redactValue({ command }, { redacted: 0 }, true))], true)).toEqual([]);
    expect(leaking((text) => [redactedText(toolInput(text)).text], true)).toEqual([]);
    expect(leaking((text) => [redactedText(JSON.stringify({ input: toolInput(text) })).text])).toEqual([]);
  });

  /** The program that a secret is piped into comes after it, and so does `-us12`. */
  const KNOWN_TOO_LATE = /^echo .*\||-us12$/;

  it('is hidden while it streams character by character', () => {
    const late = (templates: string[]) => templates.filter((template) => !KNOWN_TOO_LATE.test(template));
    expect(late(leaking((text) => shownAfterEach(`${text}\n`)))).toEqual([]);
    expect(late(leaking((text) => shownAfterEach(toolInput(text)), true))).toEqual([]);
    expect(FORMS.filter(({ template }) => KNOWN_TOO_LATE.test(template)).length).toBeLessThanOrEqual(
      FORMS.length * 0.03,
    );
  });

  it('is hidden wherever a text is cut in two, and shown the same then as a whole', () => {
    const sample = FORMS.filter(({ template }, at) => at % 4 === 0 && !KNOWN_TOO_LATE.test(template));
    for (const { text, secrets } of sample) {
      for (let cut = 1; cut < text.length; cut += 1) {
        const [first = '', last = ''] = shownAfterEach([text.slice(0, cut), text.slice(cut)]);
        expect([text.slice(0, cut), hasLeak(first, secrets)]).toEqual([text.slice(0, cut), false]);
        expect(last).toBe(redactedText(text).text);
      }
    }
  });
});

describe('the corpus of look-alikes', () => {
  const changed = (change: (text: string) => boolean) => HARMLESS.filter(change);

  it('stays as it is', () => {
    expect(changed((text) => redactedText(`${text}\n`).text !== `${text}\n`)).toEqual([]);
    expect(changed((text) => findSecrets(text).length > 0)).toEqual([]);
  });

  it('stays as it is in the input of a tool, and in pieces', () => {
    expect(changed((text) => redactedText(`${toolInput(text)}\n`).text !== `${toolInput(text)}\n`)).toEqual([]);
    expect(changed((text) => [...shownAfterEach(`${text}\n`)].at(-1) !== `${text}\n`)).toEqual([]);
  });
});
