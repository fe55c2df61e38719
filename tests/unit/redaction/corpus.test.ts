import { findSecrets } from '@interlude/protocol/redaction/find-secrets';
import { redactValue } from '@interlude/protocol/redaction/redact-value';
import { redactedText } from '@interlude/protocol/redaction/redacted-text';
import { describe, expect, it } from 'vitest';
import {
  isDetectableEarly,
  leakingCuts,
  leakingForms,
  shownByCharacter,
  toolInput,
} from '@/tests/support/redaction-corpus';
import { continuedForms, harmlessTexts, mixedForms, prefixedForms, secretForms } from '../../support/redaction-corpus';

const SEED = 20_261_128;
const FORMS = secretForms(SEED);
const IN_TIME = FORMS.filter(isDetectableEarly);
/** corpus.all.test.ts streams all forms. */
const SAMPLE = IN_TIME.filter((_, index) => index % 8 === 0);
const HARMLESS = harmlessTexts(SEED);
describe('redaction of the corpus', () => {
  it('has at least 200 forms each', () => {
    expect([FORMS.length >= 200, HARMLESS.length >= 200]).toEqual([true, true]);
    expect(FORMS.filter(({ secrets }) => secrets.length === 0)).toEqual([]);
  });

  it('hides secrets in a whole text', () => {
    expect(leakingForms(FORMS, (text) => [redactedText(text).text])).toEqual([]);
  });

  it('hides secrets in a log line', () => {
    const cut = (text: string) => {
      let [shown, at] = ['', 0];
      for (const { start, end } of findSecrets(text)) [shown, at] = [`${shown}${text.slice(at, start)}`, end];
      return shown + text.slice(at);
    };
    expect(leakingForms(FORMS, (text) => [cut(text)])).toEqual([]);
  });

  it('hides secrets in tool input', () => {
    expect(
      leakingForms(FORMS, (command) => [JSON.stringify(redactValue({ command }, { redacted: 0 }, true))], true),
    ).toEqual([]);
    expect(leakingForms(FORMS, (text) => [redactedText(toolInput(text)).text], true)).toEqual([]);
    expect(leakingForms(FORMS, (text) => [redactedText(JSON.stringify({ input: toolInput(text) })).text])).toEqual([]);
  });

  it('hides secrets streamed character by character', () => {
    expect(leakingForms(SAMPLE, shownByCharacter)).toEqual([]);
    expect(leakingForms(SAMPLE, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('hides secrets at every split with the same result as the whole text', () => {
    expect(leakingCuts(SAMPLE)).toEqual([]);
  });

  it('hides secrets behind gutters', () => {
    expect(leakingForms(prefixedForms(FORMS), (text) => [redactedText(text).text])).toEqual([]);
  });

  it('hides secrets in continued commands', () => {
    const continued = continuedForms(IN_TIME);
    expect(leakingForms(continued, (text) => [redactedText(text).text])).toEqual([]);
    expect(
      leakingForms(continued, (command) => [JSON.stringify(redactValue({ command }, { redacted: 0 }, true))], true),
    ).toEqual([]);
    expect(leakingCuts(continued.filter((_, index) => index % 61 === 0))).toEqual([]);
  });

  it('leaves redacted text unchanged', () => {
    const again = FORMS.map(({ text }) => redactedText(text).text).filter((text) => redactedText(text).text !== text);
    expect(again).toEqual([]);
  });

  it('gives the same result for mixed forms at every split', () => {
    const blocks = FORMS.filter(({ text }) => /\n|<t[dr]|\\n/.test(text));
    expect(leakingCuts(mixedForms(blocks, SEED, 20))).toEqual([]);
  });

  it('has few forms identified only by later text', () => {
    expect(FORMS.length - IN_TIME.length).toBeLessThanOrEqual(FORMS.length * 0.03);
  });
});

describe('redaction of harmless look-alikes', () => {
  const changed = (change: (text: string) => boolean) => HARMLESS.filter(change);

  it('leaves them unchanged', () => {
    expect(changed((text) => redactedText(text).text !== text)).toEqual([]);
    expect(changed((text) => findSecrets(text).length > 0)).toEqual([]);
  });

  it('leaves them unchanged in tool input and in pieces', () => {
    expect(changed((text) => redactedText(toolInput(text)).text !== toolInput(text))).toEqual([]);
    expect(changed((text) => [...shownByCharacter(text)].at(-1) !== `${text}\n`)).toEqual([]);
  });
});
