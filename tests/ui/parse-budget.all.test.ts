import { describe, expect, it } from 'vitest';
import {
  LIGHT_CHARACTERS,
  NOTHING_PARSED,
  parseBlocks,
  parseLight,
  textsParsedAtOnce,
  withPart,
} from '@/components/ui/markdown/parse';
import { highlight } from '@/components/ui/markdown/text-jobs';
import { hostileTexts } from '../support/hostile-texts';
import { cpuMs, expectWithin } from '../support/timing';

/** Parsing during a render takes a few milliseconds, seventy at most. */
const LONGEST_RENDER_MS = 600;
/** The worker takes half a second at most and is stopped after three. Unbounded parsing takes minutes. */
const LONGEST_JOB_MS = 3_000;

describe('parsing a hostile text', () => {
  it.each(hostileTexts(120_000))('ends in the worker: $name', ({ name, text }) => {
    const took = cpuMs(() => {
      const parsed = withPart(NOTHING_PARSED, text, parseBlocks(text) ?? [], false);
      expect(parsed.blocks.length).toBeGreaterThan(0);
    });
    expectWithin(took, LONGEST_JOB_MS, name);
  });

  it('is short during a render, for each 1,000 characters that a message grows by', () => {
    for (const { name, text } of hostileTexts(10_000)) {
      let parsed = NOTHING_PARSED;
      let slowest = 0;
      for (let end = 0; end <= text.length; end += 1_000) {
        const before = parsed;
        const took = cpuMs(() => {
          parsed = parseLight(before, text.slice(0, end), true) ?? before;
        });
        slowest = Math.max(slowest, took);
      }
      expectWithin(slowest, LONGEST_RENDER_MS, name);
    }
  });

  it('is short for all texts that the server parses into a page', () => {
    for (const { name, text } of hostileTexts(LIGHT_CHARACTERS)) {
      const chosen = [...textsParsedAtOnce(Array.from({ length: 300 }, (_, index) => text.slice(0, -(index + 1))))];
      const took = cpuMs(() => {
        for (const one of chosen) parseLight(NOTHING_PARSED, one, false);
      });
      expectWithin(took, LONGEST_RENDER_MS, `${name}: ${chosen.length}`);
    }
  });
});

it('highlights hostile code before the worker is stopped', () => {
  for (const language of ['markdown', 'cpp', 'ini']) {
    for (const { name, text } of hostileTexts(6_000)) {
      const took = cpuMs(() => highlight(text, language));
      expectWithin(took, LONGEST_JOB_MS, `${language}: ${name}`);
    }
  }
});
