import { usageError } from './exit';

/** @throws CliError for an address that no request can be sent to */
export function requireHttp(address: string | undefined, command: string): void {
  if (address === undefined) return;
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) {
    throw usageError(`${address} is not an http address`, command);
  }
}
