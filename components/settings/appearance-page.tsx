'use client';

import { useDensity, useTheme } from '@/components/ui/appearance';
import { writeStored } from '@/components/ui/browser-storage';
import { useClock } from '@/components/ui/clock';
import { TIMES_KEY } from '@/components/ui/storage-key';
import { type TimeSettings, timeFormat, useTimeFormat } from '@/components/ui/time-format';
import { Section } from './fact-table';
import { Choice, Setting } from './setting';

/** Languages of dates, each in its own words. Any other tag can come from the browser. */
const LANGUAGES = [
  ['en-GB', 'English (24 November)'],
  ['en-US', 'English (November 24)'],
  ['ar', 'العربية'],
  ['cs', 'Čeština'],
  ['da', 'Dansk'],
  ['de', 'Deutsch'],
  ['es', 'Español'],
  ['fr', 'Français'],
  ['he', 'עברית'],
  ['hi', 'हिन्दी'],
  ['it', 'Italiano'],
  ['ja', '日本語'],
  ['ko', '한국어'],
  ['nl', 'Nederlands'],
  ['nb', 'Norsk bokmål'],
  ['pl', 'Polski'],
  ['pt-BR', 'Português (Brasil)'],
  ['sv', 'Svenska'],
  ['tr', 'Türkçe'],
  ['uk', 'Українська'],
  ['zh-CN', '中文（简体）'],
] as const;

/** How the dashboard looks in this browser. */
export function AppearancePage() {
  const [theme, setTheme] = useTheme();
  const [density, setDensity] = useDensity();
  const settings = (useTimeFormat() ?? timeFormat()).settings;
  return (
    <div className="space-y-9">
      <Section title="Appearance" about="Changes apply at once, in every tab of this browser.">
        <Setting id="theme" name="Theme" about="System follows your device.">
          <Choice
            of="theme"
            value={theme}
            options={[
              ['system', 'System'],
              ['light', 'Light'],
              ['dark', 'Dark'],
            ]}
            onChange={setTheme}
          />
        </Setting>
        <Setting id="density" name="Density" about="Compact shows more sessions, inbox items, agents and log lines.">
          <Choice
            of="density"
            value={density}
            options={[
              ['comfortable', 'Comfortable'],
              ['compact', 'Compact'],
            ]}
            onChange={setDensity}
          />
        </Setting>
      </Section>
      <Section title="Times and dates" about={<Example />}>
        <Setting id="hours" name="Time format">
          <Choice
            of="hours"
            value={settings.hours}
            options={[
              ['24', '24-hour'],
              ['12', '12-hour'],
              ['browser', 'As the browser'],
            ]}
            onChange={(hours) => changeTimes({ hours })}
          />
        </Setting>
        <Setting id="language" name="Language of dates" about="The rest of the page stays in English.">
          <select
            aria-labelledby="language-name"
            value={settings.language}
            onChange={({ target }) => changeTimes({ language: target.value })}
            className="h-8 pointer-coarse:h-11 max-w-full rounded-md border border-line-strong bg-ground px-2"
          >
            <option value="">As the browser</option>
            {!LANGUAGES.some(([tag]) => tag === settings.language) && settings.language !== '' && (
              <option value={settings.language}>{settings.language}</option>
            )}
            {LANGUAGES.map(([tag, name]) => (
              <option key={tag} value={tag} lang={tag}>
                {name}
              </option>
            ))}
          </select>
        </Setting>
        <Setting id="ages" name="Times in lists" about="Relative: 4m. Absolute: the time today, else the date.">
          <Choice
            of="ages"
            value={settings.isAbsolute ? 'absolute' : 'relative'}
            options={[
              ['relative', 'Relative'],
              ['absolute', 'Absolute'],
            ]}
            onChange={(ages) => changeTimes({ isAbsolute: ages === 'absolute' })}
          />
        </Setting>
      </Section>
    </div>
  );
}

/** The current time in the chosen format. */
function Example() {
  const format = useTimeFormat();
  const now = useClock((at) => at - (at % 1_000));
  return (
    <>
      Now:{' '}
      <time lang={format?.language} className="text-ink-2">
        {format?.full(now)}
      </time>
    </>
  );
}

export function changeTimes(change: Partial<TimeSettings>): void {
  writeStored(TIMES_KEY, JSON.stringify({ ...timeFormat().settings, ...change }));
}
