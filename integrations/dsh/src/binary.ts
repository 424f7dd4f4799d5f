/** Finding the program (design § 13): `RWD_BIN`, the host's PATH, then a package for this platform. */

import { createRequire } from 'node:module'
import { access, constants } from 'node:fs/promises'
import { isAbsolute } from 'node:path'

import type { SubprocessService } from './host.ts'

/** Where the program is, or why it was not found: the reason is told to whoever asks for files. */
export type Found = { readonly path: string } | { readonly missing: string }

/** Packages that carry the program, by platform and architecture. */
export function platformPackage(platform: string = process.platform, arch: string = process.arch): string {
  return `rwd-dsh-${platform}-${arch}`
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** Looks in each place in turn. An explicit `RWD_BIN` that cannot be run is an error of its own: nothing else is tried. */
export async function findProgram(
  subprocess: Pick<SubprocessService, 'resolveExecutable'>,
  environment: Record<string, string | undefined> = process.env,
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): Promise<Found> {
  const named = environment['RWD_BIN']
  if (named !== undefined && named.trim() !== '') {
    if (!isAbsolute(named)) return { missing: `RWD_BIN must be an absolute path, not ${named}` }
    return (await isExecutable(named)) ? { path: named } : { missing: `RWD_BIN names ${named}, which cannot be run` }
  }
  try {
    return { path: await subprocess.resolveExecutable('rwd') }
  } catch {
    // Not on the PATH: the package of this platform may have it.
  }
  try {
    const path = resolve(`${platformPackage()}/bin/rwd${process.platform === 'win32' ? '.exe' : ''}`)
    if (await isExecutable(path)) return { path }
  } catch {
    // No such package is installed.
  }
  return { missing: `rwd is not on the PATH and ${platformPackage()} is not installed; set RWD_BIN or install rwd` }
}
