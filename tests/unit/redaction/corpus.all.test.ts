import { describe, expect, it } from 'vitest';
import { continuedForms, gutteredForms, mixedForms, secretForms } from '../../support/redaction-corpus';
import { isKnownInTime, leaking, leakingCuts, shownByCharacter, toolInput } from '../../support/redaction-leaks';

const FORMS = secretForms(20_261_128).filter(isKnownInTime);

describe('redaction of the whole corpus', () => {
  it('hides secrets streamed character by character', () => {
    expect(leaking(FORMS, shownByCharacter)).toEqual([]);
    expect(leaking(FORMS, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('hides secrets behind gutters while streaming', () => {
    expect(leaking(gutteredForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('hides secrets in continued commands while streaming', () => {
    expect(leaking(continuedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('gives the same result for mixed forms at every split', () => {
    expect(leakingCuts(mixedForms(FORMS, 20_261_128, 300))).toEqual([]);
  });

  it('hides secrets at every split with the same result as the whole text', () => {
    expect(leakingCuts(FORMS)).toEqual([]);
  });
});
