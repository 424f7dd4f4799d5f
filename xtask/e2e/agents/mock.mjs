// A model that does what the prompt asks for, in the four dialects that the clients speak. The newest user text with a
// tag, as #t1, chooses a script; how many results of tools follow it says which step is next. So an answer depends on
// the conversation in the request alone, and a session that was cut and resumed gets the same ones.
//
//   node mock.mjs LOG SCRIPTS          prints "port N" once it listens on loopback
//
// SCRIPTS is JSON: { root, scripts: { TAG: { say, steps: [[[tool, fields], …], …], end } } } with the tools
//   write { path, content }, edit { path, old, new }, bash { command }; paths are relative to `root`. In the first dialect also
//   bash { command, background } and agent { prompt }, whose prompt names a script of its own.
// LOG gets a line for each request: { at, about, url, talk, body }. `about` is `turn` for requests that offer tools, `side` for
// titles and the like, `other` for what is no request to a model. `talk` is the conversation in one form for all dialects:
//   { role: 'user' | 'assistant' | 'system', text }, { call, input }, { result }.
import { createServer } from 'node:http'
import { appendFileSync, readFileSync } from 'node:fs'
import * as anthropic from './anthropic.mjs'
import * as chat from './chat.mjs'
import * as gemini from './gemini.mjs'
import * as responses from './responses.mjs'

const [log, file] = process.argv.slice(2)
const { root, scripts } = JSON.parse(readFileSync(file, 'utf8'))

const tagOf = text => [...text.matchAll(/#([a-z0-9]+)\b/g)].map(match => match[1]).findLast(tag => tag in scripts)

/** What is to be said and called now. */
function answerTo(talk) {
  const at = talk.findLastIndex(item => item.role === 'user' && tagOf(item.text))
  if (at < 0) return { say: 'Nothing was asked for.', calls: [] }
  const { say, steps, end } = scripts[tagOf(talk[at].text)]
  let given = talk.slice(at).filter(item => 'result' in item).length
  for (const [step, calls] of steps.entries()) {
    if (given < calls.length) return { say: step === 0 ? say : '', calls }
    given -= calls.length
  }
  return { say: end, calls: [] }
}

let ids = 0
const fresh = prefix => `${prefix}_mock${String(++ids).padStart(4, '0')}`

const dialects = [
  [/\/v1\/messages(\?|$)/, anthropic],
  [/\/responses(\?|$)/, responses],
  [/\/chat\/completions/, chat],
  [/:(stream)?[gG]enerateContent/, gemini],
]

createServer((request, response) => {
  const chunks = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const whole = Buffer.concat(chunks).toString('utf8')
    const note = entry => appendFileSync(log, JSON.stringify({ at: Date.now(), url: request.url, ...entry }) + '\n')
    const json = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(value))
    }
    const dialect = request.method === 'POST' && dialects.find(([url]) => url.test(request.url))?.[1]
    try {
      if (!dialect) {
        note({ about: 'other' })
        if (/count_tokens/.test(request.url)) return json(200, { input_tokens: 100 })
        if (/countTokens/.test(request.url)) return json(200, { totalTokens: 100 })
        return json(404, { error: { type: 'not_found', message: 'the scripted model has nothing there' } })
      }
      const body = JSON.parse(whole)
      const talk = dialect.read(body)
      const tools = dialect.tools(body)
      const about = tools.length > 0 ? 'turn' : 'side'
      note({ about, talk, body })
      const answer = about === 'turn' ? answerTo(talk) : { say: '{"title": "Shop"}', calls: [] }
      const made = dialect.answer({ answer, body, tools, root, fresh, url: request.url })
      if (made.json) return json(200, made.json)
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      for (const [event, data] of made.events) {
        if (event) response.write(`event: ${event}\n`)
        response.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
      }
      response.end()
    } catch (error) {
      note({ about: 'failed', error: String(error.stack) })
      if (!response.headersSent) response.writeHead(500)
      response.end()
    }
  })
}).listen(0, '127.0.0.1', function () {
  console.log(`port ${this.address().port}`)
})
