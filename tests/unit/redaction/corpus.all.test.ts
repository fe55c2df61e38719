import { describe, expect, it } from 'vitest';
import {
  isDetectableEarly,
  leakingCuts,
  leakingForms,
  shownByCharacter,
  toolInput,
} from '@/tests/support/redaction-corpus';
import { continuedForms, mixedForms, prefixedForms, secretForms } from '../../support/redaction-corpus';

const FORMS = secretForms(20_261_128).filter(isDetectableEarly);

describe('redaction of the whole corpus', () => {
  it('hides secrets streamed character by character', () => {
    expect(leakingForms(FORMS, shownByCharacter)).toEqual([]);
    expect(leakingForms(FORMS, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('hides secrets behind gutters while streaming', () => {
    expect(leakingForms(prefixedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('hides secrets in continued commands while streaming', () => {
    expect(leakingForms(continuedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('gives the same result for mixed forms at every split', () => {
    expect(leakingCuts(mixedForms(FORMS, 20_261_128, 300))).toEqual([]);
  });

  it('hides secrets at every split with the same result as the whole text', () => {
    expect(leakingCuts(FORMS)).toEqual([]);
  });
});
