import type { ClipboardEvent } from 'react';
import type { LogWindow } from './log-window';
import { plainLine } from './log-words';

/**
 * Copies a selection of several lines as they stand in the runner's own log file: the columns of the page would come
 * one below the other. Within one line what is selected is copied.
 */
export function copyLines(event: ClipboardEvent<HTMLElement>, window: LogWindow): void {
  const selection = document.getSelection();
  if (selection === null || selection.isCollapsed) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('[data-line]')].filter((row) =>
    selection.containsNode(row, true),
  );
  if (rows.length < 2) return;
  const lines = rows
    .map((row) => window.lineAt(window.indexOf(row.dataset.line ?? '')))
    .filter((line) => line !== null)
    .sort((a, b) => a.line - b.line);
  event.clipboardData.setData('text/plain', lines.map(plainLine).join('\n'));
  event.preventDefault();
}
