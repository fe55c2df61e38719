// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { Setting } from '@/components/settings/setting';
import { SETTINGS, SETTINGS_PAGES, searchSettings } from '@/components/settings/settings-index';
import { SettingsNav } from '@/components/settings/settings-nav';
import { NextPage } from '../support/next-page';

afterEach(() => {
  cleanup();
  history.replaceState(null, '', '/');
});

const labels = (text: string, isAdmin = true) => searchSettings(text, isAdmin).map(({ label }) => label);

it('finds a setting by its label, by other words for it and by its page', () => {
  expect(labels('dens')).toEqual(['Density']);
  expect(labels('dark mode')).toEqual(['Theme']);
  expect(labels('logout')).toEqual(['Sign out']);
  expect(labels('token')[0]).toBe('Tokens');
  expect(labels('storage backup')).toEqual(['Maintenance']);
  expect(labels('zanzibar')).toEqual([]);
  expect(labels('  ')).toEqual([]);
});

it('lists the label that starts with the text first', () => {
  expect(labels('sign')[0]).toMatch(/^Sign/);
  expect(labels('keyboard')[0]).toBe('Keyboard shortcuts');
});

it('finds admin settings for admins only', () => {
  expect(labels('retention')).toEqual(['Retention']);
  expect(labels('retention', false)).toEqual([]);
});

it('has a page for each setting, and an id only once', () => {
  const pages = SETTINGS_PAGES.map(({ href }) => href);
  for (const { href } of SETTINGS) expect(pages).toContain(href.split('#')[0]);
  for (const href of pages) expect(SETTINGS.some((one) => one.href.split('#')[0] === href)).toBe(true);
});

function openSettings(isAdmin = true) {
  history.replaceState(null, '', '/settings/appearance');
  return render(
    <NextPage>
      <SettingsNav isAdmin={isAdmin} />
      <Setting id="density" name="Density">
        <button type="button">Compact</button>
      </Setting>
    </NextPage>,
  );
}

const field = () => screen.getByRole('searchbox', { name: 'Search settings' });
const markedId = () => document.querySelector('[data-marked]')?.id;

it('goes to the first result on Enter, marks it and focuses its control', () => {
  openSettings();
  fireEvent.change(field(), { target: { value: 'row size' } });
  fireEvent.keyDown(field(), { key: 'Enter' });
  expect(location.pathname + location.hash).toBe('/settings/appearance#density');
  expect(markedId()).toBe('density');
  expect(document.activeElement?.textContent).toBe('Compact');
  expect(screen.queryByRole('list', { name: 'Settings found' })).toBeNull();
});

it('moves between the field and the results with the arrow keys, and clears on Escape', () => {
  openSettings();
  fireEvent.change(field(), { target: { value: 'appearance' } });
  field().focus();
  fireEvent.keyDown(field(), { key: 'ArrowDown' });
  expect(document.activeElement?.textContent).toBe('Theme Appearance');
  fireEvent.keyDown(document.activeElement as Element, { key: 'ArrowDown' });
  expect(document.activeElement?.textContent).toBe('Density Appearance');
  fireEvent.click(document.activeElement as Element);
  expect(markedId()).toBe('density');
  fireEvent.change(field(), { target: { value: 'zanzibar' } });
  expect(screen.getByText('No settings match “zanzibar”.')).toBeDefined();
  fireEvent.keyDown(field(), { key: 'Escape' });
  expect(screen.getByRole('navigation', { name: 'Settings' })).toBeDefined();
});

it('marks the setting that a link leads to', () => {
  history.replaceState(null, '', '/settings/appearance#density');
  render(
    <NextPage>
      <SettingsNav isAdmin={false} />
      <Setting id="density" name="Density">
        <button type="button">Compact</button>
      </Setting>
    </NextPage>,
  );
  expect(markedId()).toBe('density');
  expect(screen.queryByRole('link', { name: 'Members' })).toBeNull();
});
