import { describe, expect, it } from 'vitest';
import { continuedForms, gutteredForms, mixedForms, secretForms } from '../../support/redaction-corpus';
import { isKnownInTime, leaking, leakingCuts, shownByCharacter, toolInput } from '../../support/redaction-leaks';

const FORMS = secretForms(20_261_128).filter(isKnownInTime);

describe('the whole corpus of secrets', () => {
  it('is hidden while it streams character by character', () => {
    expect(leaking(FORMS, shownByCharacter)).toEqual([]);
    expect(leaking(FORMS, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('is hidden behind what is printed before each line, while it streams', () => {
    expect(leaking(gutteredForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('is hidden in commands that go on behind a line break, while it streams', () => {
    expect(leaking(continuedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('shows two forms and other text the same, wherever they are cut in two', () => {
    expect(leakingCuts(mixedForms(FORMS, 20_261_128, 300))).toEqual([]);
  });

  it('is hidden wherever a text is cut in two, and shown the same then as a whole', () => {
    expect(leakingCuts(FORMS)).toEqual([]);
  });
});
