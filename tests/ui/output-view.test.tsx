// @vitest-environment happy-dom

import type { OutputPart, TaskOutput } from '@interlude/protocol/read-models';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { OutputView } from '@/components/tasks/output-view';

beforeEach(() => {
  // rows are laid out in a box of some height only
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(2_000);
  vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(2_000);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(1_000);
});
afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

const anOutput = (parts: OutputPart[]): TaskOutput => ({ parts, redacted: 0, lastAt: 0, hasEnded: false, error: null });

test('shows output as text, and marks dropped parts', async () => {
  const output = anOutput([
    { from: 70_000, to: 70_050, text: '<img src=x onerror=alert(1)>\u001b]0;title\u0007 \u202eevil\n' },
    { from: 90_000, to: 140_001, text: `${'w'.repeat(5_000)}\n` },
    { from: 140_001, to: 140_005, text: 'end\n' },
  ]);
  render(<OutputView output={output} name="Output of Odd" isLive={false} />);
  await screen.findByText('end');
  const log = screen.getByRole('log');
  expect(log.querySelector('img')).toBeNull();
  expect(log.textContent).toContain('<img src=x onerror=alert(1)>');
  for (const sign of ['\u0007', '\u001b', '\u202e']) expect(log.textContent).not.toContain(sign);
  expect(log.textContent).toContain('Earlier output is not stored');
  expect(log.textContent).toContain('19 KiB of earlier output is not stored');
});

test('steps through hits with Enter, and leaves the search with Escape', async () => {
  const lines = Array.from(
    { length: 40 },
    (_, index) => `test ${index} ${index % 10 === 7 ? 'Failed' : 'passed'}\n`,
  ).join('');
  render(<OutputView output={anOutput([{ from: 0, to: 600, text: lines }])} name="Output of Tests" isLive />);
  const field = screen.getByLabelText('Search Output of Tests');
  field.focus();
  fireEvent.change(field, { target: { value: 'failed' } });
  const place = () => screen.getByRole('status').textContent;
  expect(place()).toBe('4 of 4');
  fireEvent.keyDown(field, { key: 'Enter' });
  expect(place()).toBe('3 of 4');
  fireEvent.keyDown(field, { key: 'Enter', shiftKey: true });
  fireEvent.keyDown(field, { key: 'Enter', shiftKey: true });
  expect(place()).toBe('1 of 4');
  fireEvent.keyDown(field, { key: 'Escape' });
  expect((field as HTMLInputElement).value).toBe('');
  fireEvent.keyDown(field, { key: 'Escape' });
  expect(document.activeElement).toBe(screen.getByRole('log'));
});
