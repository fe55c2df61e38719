import { describe, expect, it } from 'vitest';
import { secretForms } from '../../support/redaction-corpus';
import { isKnownInTime, leaking, leakingCuts, shownByCharacter, toolInput } from '../../support/redaction-leaks';

const FORMS = secretForms(20_261_128).filter(isKnownInTime);

describe('the whole corpus of secrets', () => {
  it('is hidden while it streams character by character', () => {
    expect(leaking(FORMS, shownByCharacter)).toEqual([]);
    expect(leaking(FORMS, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('is hidden wherever a text is cut in two, and shown the same then as a whole', () => {
    expect(leakingCuts(FORMS)).toEqual([]);
  });
});
