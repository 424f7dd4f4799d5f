// A plugin of the host that plays a list of operations in it and prints one JSON line for each: `{op, …result}` or
// `{op, error, code}`. It stands in the place of the host's own headless runner.
//
// DRIVER_PLAN names a JSON file: [{ op: create|resume|turn|command|answer|load|list|run, … }].
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { installModelSelection } from '@deepseek-ai/dsh-agent'
import { createUserMessage } from '@deepseek-ai/dsh-llm'
import { SessionId } from '@deepseek-ai/dsh-session'

export const name = 'e2e-driver'
export const inject = ['agentDefaultModel', 'agents', 'sessions', 'sessionPersistence', 'commands']

const print = object => process.stdout.write(JSON.stringify(object) + '\n')

function operations(ctx) {
  const selection = ctx.get('agentDefaultModel').currentSelection()
  const setup = agent => {
    installModelSelection(agent, { current: selection, assembled: undefined })
  }
  const agentOptions = { provider: selection.provider, model: selection.model }
  const agents = new Map()
  const questionsAsked = []
  let person
  const keep = (id, { agent }) => {
    agents.set(id, agent)
    return { events: agent.session.seq }
  }
  return {
    create: async ({ id }) =>
      keep(id, await ctx.agents.create({ sessionId: SessionId(id), meta: { cwd: process.cwd() }, agentOptions, setup })),
    resume: async ({ id }) =>
      keep(id, await ctx.agents.resume({ resumeSessionId: SessionId(id), agentOptions, setup })),
    turn: async ({ id, text }) => {
      const agent = agents.get(id)
      agent.followup(createUserMessage({ content: [{ type: 'text', text }], source: { kind: 'user' } }))
      await agent.whenIdle()
      await ctx.sessions.flush(agent.session)
      const last = agent.session.events.at(-1)
      return { events: agent.session.seq, last: last.type, reason: last.data.reason?.kind }
    },
    load: async ({ id }) => {
      const loaded = await ctx.sessionPersistence.load(SessionId(id))
      return { id, events: loaded.events.length, tail: loaded.events.slice(-3).map(event => event.type) }
    },
    list: async () => ({ ids: (await ctx.sessionPersistence.list()).map(entry => String(entry.id ?? entry)).sort() }),
    // A slash command, as a user interface dispatches it.
    command: async ({ id, line }) => {
      const done = await ctx.commands.execute(agents.get(id), line, [], new AbortController().signal)
      await ctx.sessions.flush(agents.get(id).session)
      return { line, ...done?.result }
    },
    // From here on a person is there who answers every question with this label, or with a text of their own.
    answer: async ({ label, custom }) => {
      const questions = ctx.get('userQuestions')
      person?.()
      person = questions.registerProvider({
        ask: async asked => {
          questionsAsked.push(...asked.questions.map(({ question, detail }) => ({ question, detail })))
          return { answers: asked.questions.map(({ id }) => ({ id, selected: label === undefined ? [] : [label], custom })) }
        },
      })
      return {}
    },
    asked: async () => ({ questions: questionsAsked.splice(0) }),
    // Another program at work while the host runs.
    run: async ({ argv }) => ({ out: execFileSync(argv[0], argv.slice(1), { encoding: 'utf8' }) }),
  }
}

async function play(ctx) {
  await ctx.get('loader')?.await()
  const known = operations(ctx)
  for (const step of JSON.parse(readFileSync(process.env.DRIVER_PLAN, 'utf8'))) {
    try {
      print({ op: step.op, ...(await known[step.op](step)) })
    } catch (error) {
      print({ op: step.op, error: error?.message ?? String(error), code: error?.code, out: error?.stdout })
    }
  }
}

export function apply(ctx) {
  const exit = ctx.get('appExit')
  play(ctx).then(() => exit(0), error => {
    console.error(error)
    exit(1)
  })
}
