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
/** corpus.all.test.ts streams all of them. */
const SAMPLE = IN_TIME.filter((_, at) => at % 8 === 0);
const HARMLESS = harmlessTexts(SEED);
describe('the corpus of secrets', () => {
  it('has two hundred forms of each sort', () => {
    expect([FORMS.length >= 200, HARMLESS.length >= 200]).toEqual([true, true]);
    expect(FORMS.filter(({ secrets }) => secrets.length === 0)).toEqual([]);
  });

  it('is hidden in a whole text', () => {
    expect(leakingForms(FORMS, (text) => [redactedText(text).text])).toEqual([]);
  });

  it('is hidden in a log line', () => {
    const cut = (text: string) => {
      let [shown, at] = ['', 0];
      for (const { start, end } of findSecrets(text)) [shown, at] = [`${shown}${text.slice(at, start)}`, end];
      return shown + text.slice(at);
    };
    expect(leakingForms(FORMS, (text) => [cut(text)])).toEqual([]);
  });

  it('is hidden in the input of a tool', () => {
    expect(
      leakingForms(FORMS, (command) => [JSON.stringify(redactValue({ command }, { redacted: 0 }, true))], true),
    ).toEqual([]);
    expect(leakingForms(FORMS, (text) => [redactedText(toolInput(text)).text], true)).toEqual([]);
    expect(leakingForms(FORMS, (text) => [redactedText(JSON.stringify({ input: toolInput(text) })).text])).toEqual([]);
  });

  it('is hidden while it streams character by character', () => {
    expect(leakingForms(SAMPLE, shownByCharacter)).toEqual([]);
    expect(leakingForms(SAMPLE, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('is hidden wherever a text is cut in two, and shown the same then as a whole', () => {
    expect(leakingCuts(SAMPLE)).toEqual([]);
  });

  it('is hidden behind what is printed before each line', () => {
    expect(leakingForms(prefixedForms(FORMS), (text) => [redactedText(text).text])).toEqual([]);
  });

  it('is hidden in commands that go on behind a line break', () => {
    const continued = continuedForms(IN_TIME);
    expect(leakingForms(continued, (text) => [redactedText(text).text])).toEqual([]);
    expect(
      leakingForms(continued, (command) => [JSON.stringify(redactValue({ command }, { redacted: 0 }, true))], true),
    ).toEqual([]);
    expect(leakingCuts(continued.filter((_, at) => at % 61 === 0))).toEqual([]);
  });

  it('has nothing to hide in what is shown', () => {
    const again = FORMS.map(({ text }) => redactedText(text).text).filter((text) => redactedText(text).text !== text);
    expect(again).toEqual([]);
  });

  it('shows two forms and other text the same, wherever they are cut in two', () => {
    const blocks = FORMS.filter(({ text }) => /\n|<t[dr]|\\n/.test(text));
    expect(leakingCuts(mixedForms(blocks, SEED, 20))).toEqual([]);
  });

  it('has few forms whose secret shows only by what follows it', () => {
    expect(FORMS.length - IN_TIME.length).toBeLessThanOrEqual(FORMS.length * 0.03);
  });
});

describe('the corpus of look-alikes', () => {
  const changed = (change: (text: string) => boolean) => HARMLESS.filter(change);

  it('stays as it is', () => {
    expect(changed((text) => redactedText(text).text !== text)).toEqual([]);
    expect(changed((text) => findSecrets(text).length > 0)).toEqual([]);
  });

  it('stays as it is in the input of a tool, and in pieces', () => {
    expect(changed((text) => redactedText(toolInput(text)).text !== toolInput(text))).toEqual([]);
    expect(changed((text) => [...shownByCharacter(text)].at(-1) !== `${text}\n`)).toEqual([]);
  });
});
