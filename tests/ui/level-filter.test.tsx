// @vitest-environment happy-dom

import type { LogLevel } from '@interlude/protocol/vocabulary';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { LevelFilter } from '@/components/logs/log-toolbar';

const chosen: (LogLevel | null)[] = [];
afterEach(() => {
  vi.useRealTimers();
  cleanup();
});

function Filter() {
  const [level, setLevel] = useState<LogLevel | null>('error');
  const onLevel = (level: LogLevel | null) => {
    chosen.push(level);
    setLevel(level);
  };
  return (
    <>
      <LevelFilter level={level} onLevel={onLevel} />
      <button type="button">elsewhere</button>
    </>
  );
}

test('selects with each arrow key, and leaves the focus where it moves next', () => {
  vi.useFakeTimers();
  render(<Filter />);
  screen.getByRole('radio', { name: 'error' }).focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'ArrowLeft']) {
    fireEvent.keyDown(document.activeElement as Element, { key });
  }
  const elsewhere = screen.getByRole('button', { name: 'elsewhere' });
  elsewhere.focus();
  vi.runAllTimers();
  expect(chosen.filter((level, index) => level !== chosen[index - 1])).toEqual(['fatal', null, 'fatal', 'error']);
  expect(document.activeElement).toBe(elsewhere);
});

test('the chosen level stands out from the levels above it', () => {
  render(<LevelFilter level={null} onLevel={() => {}} />);
  const classesOf = (name: string) => screen.getByRole('radio', { name }).className.split(' ');
  expect(classesOf('debug')).toEqual(expect.arrayContaining(['text-ink', 'font-medium', 'underline']));
  expect(classesOf('info')).toContain('text-ink-2');
  expect(classesOf('info')).not.toContain('font-medium');
});
