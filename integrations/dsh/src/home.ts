/** Directories that are named in settings and variables. */

import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** `~` and `~/x` as the shell reads them; nothing else of it. */
const expanded = (path: string): string => path.replace(/^~(?=\/|$)/, homedir())

const named = (environment: Environment): string | undefined => {
  const home = environment['DSH_HOME']?.trim() ?? ''
  return home === '' ? undefined : resolve(expanded(home))
}

/** Where the host keeps its sessions: the variable if it is not blank, else `~/.dsh`. */
export function hostHome(environment: Environment = process.env): string {
  return named(environment) ?? join(homedir(), '.dsh')
}

/**
 * A directory of the settings, absolute: the engine runs in a directory of its own, so a relative path would lead
 * somewhere else there. It is taken from the host's home if that is named, else from the working directory (002-26).
 */
export function placeOf(path: string, environment: Environment = process.env): string {
  return resolve(named(environment) ?? process.cwd(), expanded(path.trim()))
}
