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

describe('the whole corpus of secrets', () => {
  it('is hidden while it streams character by character', () => {
    expect(leakingForms(FORMS, shownByCharacter)).toEqual([]);
    expect(leakingForms(FORMS, (text) => shownByCharacter(toolInput(text)), true)).toEqual([]);
  });

  it('is hidden behind what is printed before each line, while it streams', () => {
    expect(leakingForms(prefixedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('is hidden in commands that go on behind a line break, while it streams', () => {
    expect(leakingForms(continuedForms(FORMS), shownByCharacter)).toEqual([]);
  });

  it('shows two forms and other text the same, wherever they are cut in two', () => {
    expect(leakingCuts(mixedForms(FORMS, 20_261_128, 300))).toEqual([]);
  });

  it('is hidden wherever a text is cut in two, and shown the same then as a whole', () => {
    expect(leakingCuts(FORMS)).toEqual([]);
  });
});
