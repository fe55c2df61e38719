// @vitest-environment happy-dom

import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { ApiReference } from '@/components/settings/api-reference';
import { openApiDocument } from '@/lib/server/open-api/open-api-document';

const route = { method: 'GET', pattern: '/api/v1/sessions/:sessionId/tasks', access: 'read' } as const;
const document = openApiDocument([route]);

afterEach(() => {
  cleanup();
  location.hash = '';
});

it('renders details of opened entries only', () => {
  render(<ApiReference document={document} origin="http://host" />);
  expect(screen.queryByText('From a shell')).toBeNull();
  const entry = window.document.querySelector<HTMLDetailsElement>('#getSessionsBySessionIdTasks > details');
  if (entry === null) throw new Error('the operation is not listed');
  entry.open = true;
  fireEvent(entry, new Event('toggle'));
  screen.getByText('From a shell');
  expect(entry.textContent).toContain('curl "$INTERLUDE_URL/api/v1/sessions/SESSION_ID/tasks"');
  const type = screen.getByRole('link', { name: 'TaskList' });
  expect(type.getAttribute('href')).toBe('#TaskList');
});

it('opens the entry in the address', () => {
  location.hash = '#TaskList';
  render(<ApiReference document={document} origin="http://host" />);
  const entry = window.document.querySelector<HTMLDetailsElement>('#TaskList > details');
  expect(entry?.open).toBe(true);
});
