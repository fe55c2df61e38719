import { describe, expect, it } from 'vitest';
import { highlight } from '@/components/ui/markdown/highlight';
import { textsParsedAtOnce } from '@/components/ui/markdown/markdown-work';
import { isParsed, NOTHING_SETTLED, parse, parseFurther, WINDOW } from '@/components/ui/markdown/parse';
import { cpuMs } from '../support/cpu-time';
import { hostileTexts } from '../support/hostile-texts';
import { expectWithin } from '../support/pace';

/** A step takes ten milliseconds, forty at most. Parsing a hostile text at once would take minutes. */
const LONGEST_STEP_MS = 600;

describe('parsing a hostile text', () => {
  it('takes short steps, and comes to an end', () => {
    for (const { name, text } of hostileTexts(16_000)) {
      let state = NOTHING_SETTLED;
      while (!isParsed(state, text)) {
        const before = state;
        const took = cpuMs(() => {
          state = parseFurther(before, text, { streaming: false, goesOn: () => false });
        });
        expectWithin(took, LONGEST_STEP_MS, name);
        expect(state.shownLength > before.shownLength || state.window > before.window, name).toBe(true);
      }
      expect(state.shown.map(({ raw }) => raw).join('').length, name).toBeGreaterThan(0);
    }
  });

  it('takes a short step for each 1,000 characters that a message grows by', () => {
    for (const { name, text } of hostileTexts(10_000)) {
      let state = NOTHING_SETTLED;
      let slowest = 0;
      for (let end = 0; end <= text.length; end += 1_000) {
        const before = state;
        const took = cpuMs(() => {
          state = parseFurther(before, text.slice(0, end), { goesOn: () => false });
        });
        slowest = Math.max(slowest, took);
      }
      expectWithin(slowest, LONGEST_STEP_MS, name);
    }
  });

  it('highlights hostile code within one step', () => {
    for (const language of ['markdown', 'cpp', 'ini']) {
      for (const { name, text } of hostileTexts(6_000)) {
        const took = cpuMs(() => highlight(text, language));
        expectWithin(took, LONGEST_STEP_MS, `${language}: ${name}`);
      }
    }
  });

  it('takes one step for all the texts that the server parses into a page', () => {
    for (const { name, text } of hostileTexts(WINDOW)) {
      const chosen = [...textsParsedAtOnce(Array.from({ length: 300 }, (_, at) => text.slice(0, -(at + 1))))];
      const took = cpuMs(() => {
        for (const one of chosen) parse(one);
      });
      expectWithin(took, LONGEST_STEP_MS, `${name}: ${chosen.length}`);
    }
  });
});
