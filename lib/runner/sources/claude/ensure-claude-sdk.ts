import { CliError, EXIT, stopSignals } from '../../cli/command';
import { ensurePackage } from '../../cli/install-package';
import { type InstalledSdk, loadClaudeSdk, wantedClaudeSdk } from './claude-sdk';

/**
 * The Agent SDK, installed where somebody agrees to it.
 *
 * @param home the data folder
 * @throws CliError where it is missing in the end, or was interrupted
 */
export async function ensureClaudeSdk(
  home: string,
  { sdk, yes }: { sdk: string | undefined; yes: boolean },
): Promise<InstalledSdk> {
  const { ends: signal, release } = stopSignals();
  try {
    const ensured = await ensurePackage(wantedClaudeSdk(home, sdk), () => loadClaudeSdk(home, sdk), yes, signal);
    if (ensured.state === 'ready') return ensured.loaded;
    if (ensured.state === 'missing') throw new CliError(EXIT.notInstalled, ensured.why);
    throw new CliError(EXIT.interrupted, 'stopped; nothing was installed');
  } finally {
    release();
  }
}
